/* SPDX-License-Identifier: Apache-2.0 */
/* The shape of the control tree. Pure.
 *
 * The leaders of the nodes (the lowest rank of each) form a tree by node number, with
 * node 0 at its root; the other ranks of a node are children of their leader:
 *
 *   node 0 ── node 1 ── node 9, 10, ...
 *    │  ├─── node 2 ── node 17, ...
 *    │  └─── ... node 8
 *    └ its local ranks */
#ifndef HVD_TREE_H
#define HVD_TREE_H

#include "pmix_boot/layout.h"

/* Number of children that a leader has on other nodes. With 8, four hops reach 4,681
 * nodes from the root, while a leader writes to few sockets. Fewer children mean more
 * hops, each of which costs a wake-up. */
#define HVD_TREE_FANOUT 8

/* Returns the parent of `rank`, or -1 for rank 0. */
int hvd_tree_parent(const struct hvd_layout *layout, int rank);

/* Returns the number of children of `rank`. children, if not NULL, has room for them:
 * first the leaders of other nodes, then the local ranks, each in ascending order. */
int hvd_tree_children(const struct hvd_layout *layout, int rank, int *children);

#endif
