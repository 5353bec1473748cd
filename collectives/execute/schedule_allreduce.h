/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an allreduce: its plan (schedule_allreduce_plan.c), within a node
 * (schedule_allreduce.c), between nodes (schedule_allreduce_nodes.c) and between many
 * (schedule_allreduce_grid.c). Private to them. */
#ifndef HVD_SCHEDULE_ALLREDUCE_H
#define HVD_SCHEDULE_ALLREDUCE_H

#include "collectives/execute/schedule_internal.h"
#include "collectives/execute/schedule_ranks.h"

struct hvd_chunk {
    struct hvd_range elements; /* of the input */
    int slot;
};

struct hvd_chunk hvd_allreduce_chunk(const struct hvd_schedule *schedule, int64_t number);

/* Where element `first` of the chunk is in a local rank's IN or OUT. */
struct hvd_place hvd_allreduce_place(const struct hvd_schedule *schedule,
                                     const struct hvd_chunk *chunk,
                                     struct hvd_place place, int64_t first);

/* Bytes of SEND and RECV that one lane of lane_count elements takes. */
size_t hvd_allreduce_send_bytes(const struct hvd_schedule *schedule, int64_t lane_count);
size_t hvd_allreduce_recv_bytes(const struct hvd_schedule *schedule, int64_t lane_count);

/* Steps that one rank takes for the lanes of a chunk that it carries, in this order:
 * local ranks' IN -> partials in SEND -> messages -> results in OUT (-> messages -> OUT). */
void hvd_allreduce_local_partials(struct hvd_schedule *schedule,
                                  const struct hvd_chunk *chunk);
void hvd_allreduce_post_partials(struct hvd_schedule *schedule,
                                 const struct hvd_chunk *chunk);
void hvd_allreduce_reduce_nodes(struct hvd_schedule *schedule,
                                const struct hvd_chunk *chunk);
void hvd_allreduce_post_finals(struct hvd_schedule *schedule,
                               const struct hvd_chunk *chunk);
void hvd_allreduce_await_finals(struct hvd_schedule *schedule,
                                const struct hvd_chunk *chunk);

/* All steps of one tick. */
void hvd_allreduce_emit(struct hvd_schedule *schedule, int64_t tick);

/* The most steps of a tick that have to do with other nodes. */
int hvd_allreduce_steps_between(const struct hvd_allreduce_plan *plan);

/* On a grid: all that concerns other nodes in one tick, and RECV bytes of one lane. */
void hvd_allreduce_grid_tick(struct hvd_schedule *schedule, int64_t tick);
size_t hvd_allreduce_grid_recv_bytes(const struct hvd_schedule *schedule,
                                     int64_t lane_count);

#endif
