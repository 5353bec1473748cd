/* SPDX-License-Identifier: Apache-2.0 */
/* The inter-node team of a rank: the ranks of a process set, one on each node, that have
 * the same local rank. The team has its own slots, shared with no other rank of the node.
 *
 * Threads: one at a time, under the progress lock. */
#ifndef HVD_GPU_INTER_NODE_H
#define HVD_GPU_INTER_NODE_H

#include "gpu_binding/base/error.h"

struct hvd_boot;
struct hvd_gpu_inter_node;
struct hvd_team;

/* Creates the inter-node team of this rank. All nodes of `team` must have the same number
 * of ranks. The new team takes as much memory as another process set: 2 MiB of slots, 3
 * MiB for messages. It borrows the network of `team`. The caller owns *out. */
int hvd_gpu_inter_node_create(const struct hvd_team *team, const struct hvd_boot *boot,
                              struct hvd_gpu_inter_node **out, struct hvd_error *err);
void hvd_gpu_inter_node_destroy(struct hvd_gpu_inter_node *inter_node); /* NULL is fine */

struct hvd_team *hvd_gpu_inter_node_team(struct hvd_gpu_inter_node *inter_node);

#endif
