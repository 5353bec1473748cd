/* SPDX-License-Identifier: Apache-2.0 */
/* The cores and the memory of a node, shared fairly by the ranks that work: a rank alone works at
 * full speed, and all together not faster than the node can. */
#ifndef HVD_SIMULATE_NODE_H
#define HVD_SIMULATE_NODE_H

#include <stdint.h>

struct simulate_node {
    int ranks;
    double *left; /* [ranks] seconds of work alone, negative: idle */
    int working;
    double most; /* ranks that can work at full speed at the same time */
    double now;
    uint64_t version; /* changes with each start and end */
};

int simulate_node_init(struct simulate_node *node, int ranks, double most);
void simulate_node_finish(struct simulate_node *node);

/* An idle rank starts work that takes so long alone. */
void simulate_node_start(struct simulate_node *node, int rank, double work, double now);

/* The working rank that ends first, and when; -1 when all are idle. */
int simulate_node_next(const struct simulate_node *node, double *when);

/* That rank is idle from now on. */
void simulate_node_end(struct simulate_node *node, int rank, double now);

#endif
