/* SPDX-License-Identifier: Apache-2.0 */
/* The rounds of pairwise and ring, allgather and alltoall between nodes: each round moves
 * one piece of some blocks. Private to collectives/schedule. */
#ifndef HVD_ROUNDS_H
#define HVD_ROUNDS_H

#include "collectives/schedule/schedule_state.h"
#include "collectives/schedule/schedule_parts.h"

/* Emits one half of a round: posts its messages and fills IN, or copies received data to
 * the output. */
typedef void hvd_round_half(struct hvd_schedule *schedule, int64_t round);

/* Fills in the setup and the sizes of the schedule, for blocks of up to max_block. The
 * caller has set `distances` and `holders` in the setup. One distance moves at most
 * `pieces` blocks. */
void hvd_rounds_set_up(struct hvd_schedule *schedule, int pieces);

/* Emits one tick: collects the round that was posted `lag` ticks ago and posts the
 * next. */
void hvd_rounds_emit(struct hvd_schedule *schedule, int64_t tick, hvd_round_half *post,
                     hvd_round_half *collect);

/* Returns the distances that a round covers. */
struct hvd_range hvd_round_distances(const struct hvd_schedule *schedule, int64_t round);

/* Returns the chunk of every block that a round moves. */
int64_t hvd_round_chunk(const struct hvd_schedule *schedule, int64_t round);

/* Returns chunk `chunk` of block [bounds[rank], bounds[rank + 1]); may be empty. */
struct hvd_range hvd_round_piece(const struct hvd_schedule *schedule,
                                 const int64_t *bounds, int rank, int64_t chunk);

int hvd_round_slot(const struct hvd_schedule *schedule, int64_t round);

#endif
