/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that a rank uses to move tensors, and how a limit on it is kept. Pure
 * computation.
 *
 * A team has slots in the node's shared memory, and private buffers for messages if it
 * spans nodes. Each rank takes:
 *
 *   2 * slots * slot_bytes              shared
 *   slots * (slot_bytes + recv_bytes)   private
 *
 * The ranks of a job form HVD_PRIORITIES teams; each further process set is one more
 * team. */
#ifndef HVD_MEMORY_H
#define HVD_MEMORY_H

#include <stdint.h>

#include "collectives/schedule/schedule.h"

/* Returns the bytes that a rank takes for the teams of the global process set. */
int64_t hvd_memory_bytes(const struct hvd_geometry *geometry, int nodes);

/* Finds the usual geometry if it fits the limit (0: none). Otherwise keeps the usual
 * number of slots, and makes them as large as the limit allows. Returns 0, or HVD_ERR_ARG
 * with a text that gives the minimum. */
int hvd_memory_plan(int64_t limit, int nodes, struct hvd_geometry *geometry,
                    struct hvd_error *err);

/* Returns the stricter of the limits of two ranks; 0 is no limit. */
int64_t hvd_memory_stricter(int64_t limit, int64_t other);

#endif
