/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of a process set that have the same local rank, one of each node: a team for
 * what goes between nodes. Its slots are its own, for no other rank of the node has a
 * part in it.
 *
 * Threads: one at a time (the engine's progress lock). */
#ifndef HVD_GPU_CROSS_H
#define HVD_GPU_CROSS_H

#include "collectives/execute/team.h"

struct hvd_gpu_cross;

/* Of a team all whose nodes have the same number of ranks. Takes what a further process
 * set takes (2 MiB of slots, 3 MiB for messages). The team's network is borrowed; the
 * caller owns *out. */
int hvd_gpu_cross_create(const struct hvd_team *team, const struct hvd_boot *boot,
                         struct hvd_gpu_cross **out, struct hvd_error *err);
void hvd_gpu_cross_destroy(struct hvd_gpu_cross *cross); /* NULL is fine */

struct hvd_team *hvd_gpu_cross_team(struct hvd_gpu_cross *cross);

#endif
