/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of all ranks, and the numbers that follow from them. Pure. */
#ifndef HVD_LAYOUT_H
#define HVD_LAYOUT_H

#include <stdbool.h>

struct hvd_error;

/* Nodes are numbered in the order of their lowest rank; the local rank numbers the ranks
 * of a node in ascending order of rank. The ranks of node n are node_rank[node_first[n]]
 * ... node_rank[node_first[n + 1] - 1]. */
struct hvd_layout {
    int size;
    int nodes;
    int *node; /* [size] node of each rank */
    int *local_rank; /* [size] */
    int *node_first; /* [nodes + 1] */
    int *node_rank; /* [size] */
};

/* Computes the layout from the host name of each rank. Returns 0, HVD_ERR_ARG or
 * HVD_ERR_NOMEM. The caller ends it with hvd_layout_finish. */
int hvd_layout_init(struct hvd_layout *layout, const char *const *hosts, int size,
                    struct hvd_error *err);

/* Frees what init allocated; a zero-initialised layout is allowed. */
void hvd_layout_finish(struct hvd_layout *layout);

int hvd_layout_local_size(const struct hvd_layout *layout, int node);

/* Returns the rank with this local rank on this node; local_rank must be below the node's
 * local size. */
int hvd_layout_rank(const struct hvd_layout *layout, int node, int local_rank);

/* Counts the nodes 0 ... end - 1 that have this local rank. If `end` is the node of a
 * rank, the result is its cross rank; if `end` is the number of nodes, the cross size.
 * Needs only node_first of the layout. */
int hvd_layout_count_nodes(const int *node_first, int end, int local_rank);

/* Return the index of the rank's node among the nodes that have its local rank, and the
 * number of those nodes. */
int hvd_layout_cross_rank(const struct hvd_layout *layout, int rank);
int hvd_layout_cross_size(const struct hvd_layout *layout, int rank);

/* Returns whether all nodes have the same number of ranks. */
bool hvd_layout_is_homogeneous(const struct hvd_layout *layout);

#endif
