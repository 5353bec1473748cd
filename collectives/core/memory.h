/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory a rank takes to move tensors through, and how a bound on it is kept.
 * Pure.
 *
 * A team has slots in the node's shared memory, and scratch for messages where it spans
 * nodes:
 *
 *   each rank   2 * slots * slot_bytes   shared     slots * (slot_bytes + recv_bytes)   its own
 *
 * The ranks of a job form HVD_PRIORITIES teams; each further process set is one more. */
#ifndef HVD_MEMORY_H
#define HVD_MEMORY_H

#include <stdint.h>

#include "collectives/schedule/schedule.h"

/* Bytes that a rank takes for the teams of all ranks. */
int64_t hvd_memory_bytes(const struct hvd_geometry *geometry, int nodes);

/* The usual geometry, or with as many slots the largest that takes no more than limit. 0:
 * no limit. Returns 0, or HVD_ERR_ARG with a text that says how much is needed. */
int hvd_memory_plan(int64_t limit, int nodes, struct hvd_geometry *geometry,
                    struct hvd_error *err);

/* The limit that holds for all when ranks were given different ones; 0 is none. */
int64_t hvd_memory_stricter(int64_t limit, int64_t other);

#endif
