/* SPDX-License-Identifier: Apache-2.0 */
/* Appends steps to the current tick of a schedule. Steps that would move or reduce
 * nothing are left out; both ends of an empty message leave it out. Private to
 * collectives/schedule. */
#ifndef HVD_SCHEDULE_STEPS_H
#define HVD_SCHEDULE_STEPS_H

#include "collectives/schedule/schedule_state.h"

struct hvd_location hvd_location_of(enum hvd_location_kind kind, int local_rank, int slot,
                                    size_t offset);

void hvd_emit_put(struct hvd_schedule *schedule, int64_t input, size_t bytes,
                  struct hvd_location to);
void hvd_emit_get(struct hvd_schedule *schedule, struct hvd_location from, int64_t output,
                  size_t bytes);
void hvd_emit_reduce_local(struct hvd_schedule *schedule, struct hvd_location from,
                           int64_t input, size_t count, struct hvd_location to);
/* Appends a REDUCE_OUT. This rank must have PUT its elements into IN, unless it is alone
 * on its node. */
void hvd_emit_reduce_out(struct hvd_schedule *schedule, struct hvd_location from,
                         int64_t input, size_t count, int64_t output);

/* Appends a REDUCE_NODES; it writes the result if `to` is in OUT, else partials. */
void hvd_emit_reduce_nodes(struct hvd_schedule *schedule,
                           const struct hvd_node_sources *sources, size_t count,
                           struct hvd_location to);

void hvd_emit_copy(struct hvd_schedule *schedule, int64_t input, int64_t output,
                   size_t bytes);

/* Appends an OFFER: lets others read `bytes` of my input, or write `bytes` of my output,
 * from byte `begin` on. */
void hvd_emit_offer(struct hvd_schedule *schedule, bool is_output, int64_t begin,
                    size_t bytes, struct hvd_location to);

/* Append a FETCH to my output, or a STORE from my input: `bytes` bytes, from byte `at` on
 * of the memory that another rank offers. */
void hvd_emit_fetch(struct hvd_schedule *schedule, struct hvd_location offer, int64_t at,
                    int64_t output, size_t bytes);
/* Appends a FETCH_REDUCE: adds up `count` elements from each local rank, from byte `at`
 * of the memory that it offers in its own location `offer`, to my output. scratch is a
 * location of mine, 64-byte aligned, with room for the elements of each other rank. */
void hvd_emit_fetch_reduce(struct hvd_schedule *schedule, struct hvd_location offer,
                           int64_t at, size_t count, int64_t output,
                           struct hvd_location scratch);
void hvd_emit_store(struct hvd_schedule *schedule, struct hvd_location offer, int64_t at,
                    int64_t input, size_t bytes);

void hvd_emit_signal(struct hvd_schedule *schedule);
void hvd_emit_wait(struct hvd_schedule *schedule, int local_rank, uint64_t value);
void hvd_emit_wait_all(struct hvd_schedule *schedule, uint64_t value);

/* Appends a SIGNAL, and a WAIT until every local rank has signalled as often. */
void hvd_emit_sync(struct hvd_schedule *schedule);

void hvd_emit_send(struct hvd_schedule *schedule, struct hvd_location from, size_t bytes,
                   int peer);
void hvd_emit_recv(struct hvd_schedule *schedule, struct hvd_location to, size_t bytes,
                   int peer);

/* A receive that adds elements, or partials of them, to `own`; the sum goes to a
 * location, or to byte `output` of the output when `to` is NULL. */
struct hvd_arrival {
    struct hvd_location own;
    const struct hvd_location *to;
    int64_t output;
    size_t count;
    bool is_partial;
};
void hvd_emit_recv_reduce(struct hvd_schedule *schedule,
                          const struct hvd_arrival *arrival, int peer);
void hvd_emit_wait_sends(struct hvd_schedule *schedule, uint64_t count);
void hvd_emit_wait_recvs(struct hvd_schedule *schedule, uint64_t count);

/* Returns the elements of a sum's input whose result this rank gets. */
struct hvd_range hvd_schedule_wanted(const struct hvd_schedule *schedule);

/* Whether no other rank reads this rank's input, because this rank alone gets the sum. */
bool hvd_schedule_is_unread(const struct hvd_schedule *schedule);

#endif
