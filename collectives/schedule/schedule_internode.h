/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an allreduce: within a node (two_shot.c), between nodes
 * (linear.c) and between many (multilevel.c). Private to them. */
#ifndef HVD_LANES_ALLREDUCE_H
#define HVD_LANES_ALLREDUCE_H

#include "collectives/schedule/schedule_state.h"
#include "collectives/schedule/schedule_parts.h"

struct hvd_chunk {
    struct hvd_range elements; /* of the input */
    int slot;
};

struct hvd_chunk hvd_lanes_chunk(const struct hvd_schedule *schedule, int64_t number);

/* Where element `first` of the chunk is in a local rank's IN or OUT. */
struct hvd_place hvd_lanes_place(const struct hvd_schedule *schedule,
                                 const struct hvd_chunk *chunk, struct hvd_place place,
                                 int64_t first);

/* Bytes of SEND and RECV that one lane of lane_count elements takes. */
size_t hvd_exchange_send_bytes(const struct hvd_schedule *schedule, int64_t lane_count);
size_t hvd_exchange_recv_bytes(const struct hvd_schedule *schedule, int64_t lane_count);

/* Steps that one rank takes for the lanes of a chunk that it carries, in this order:
 * local ranks' IN -> partials in SEND -> messages -> results in OUT (-> messages -> OUT). */
void hvd_exchange_local_partials(struct hvd_schedule *schedule,
                                 const struct hvd_chunk *chunk);
void hvd_exchange_post_partials(struct hvd_schedule *schedule,
                                const struct hvd_chunk *chunk);
void hvd_exchange_reduce_nodes(struct hvd_schedule *schedule,
                               const struct hvd_chunk *chunk);
void hvd_exchange_post_finals(struct hvd_schedule *schedule,
                              const struct hvd_chunk *chunk);
void hvd_exchange_await_finals(struct hvd_schedule *schedule,
                               const struct hvd_chunk *chunk);

/* The most steps of a tick that have to do with other nodes. */
int hvd_exchange_steps_between(const struct hvd_lanes_setup *setup);

/* On a grid: all that concerns other nodes in one tick, and RECV bytes of one lane. */
void hvd_grid_allreduce_tick(struct hvd_schedule *schedule, int64_t tick);
size_t hvd_grid_allreduce_recv_bytes(const struct hvd_schedule *schedule,
                                     int64_t lane_count);

#endif
