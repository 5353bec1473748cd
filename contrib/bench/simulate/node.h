/* SPDX-License-Identifier: Apache-2.0 */
/* The cores and the memory of a node.
 *
 * A core runs one rank at a time. Its ranks, where it has several, take turns: the one that has to
 * wait looks for a while and then makes way for the next, which looks in turn, and so on until
 * one of them finds what it waits for. Memory is shared fairly by the ranks that work: a rank alone
 * works at full speed, and all together not faster than the node can. */
#ifndef HVD_SIMULATE_NODE_H
#define HVD_SIMULATE_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "contrib/bench/simulate/machine.h"

struct simulate_core {
    int last; /* the rank that worked last, and began to look at `since` */
    double since;
    bool is_busy;
    uint64_t version; /* changes with each rank that comes to work */
};

struct simulate_node {
    const struct simulate_machine *machine; /* borrowed */
    int ranks;
    double *left; /* [ranks] seconds of work alone, negative: idle */
    int working;
    double now;
    uint64_t version; /* changes with each start and end */
    int core_count; /* as many as ranks, or fewer: rank r is on core r % core_count */
    struct simulate_core *cores; /* [core_count] */
};

int simulate_node_init(struct simulate_node *node, const struct simulate_machine *machine,
                       int ranks);
void simulate_node_finish(struct simulate_node *node);

const struct simulate_core *simulate_node_core(const struct simulate_node *node,
                                               int rank);

/* When an idle rank that has something to do will see so: now if it is its turn, INFINITY if
 * another rank works. */
double simulate_node_turn(const struct simulate_node *node, int rank, double now);

/* It is its turn, and it does see something: it looks again from now on. */
void simulate_node_take(struct simulate_node *node, int rank, double now);

/* The rank whose turn it is starts work that takes so long alone. */
void simulate_node_start(struct simulate_node *node, int rank, double work, double now);

/* The working rank that ends first, and when; -1 when all are idle. */
int simulate_node_next(const struct simulate_node *node, double *when);

/* That rank looks for more to do from now on. */
void simulate_node_end(struct simulate_node *node, int rank, double now);

#endif
