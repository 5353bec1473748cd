/* SPDX-License-Identifier: Apache-2.0 */
/* Appends steps to a schedule, and counts the signals and messages among them. */
#include "collectives/schedule/schedule_steps.h"

#include <assert.h>

struct hvd_location hvd_location_of(enum hvd_location_kind kind, int local_rank, int slot,
                                    size_t offset)
{
    return (struct hvd_location){kind, local_rank, slot, offset};
}

static void append_step(struct hvd_schedule *schedule, const struct hvd_step *step)
{
    assert(schedule->step_count < schedule->step_capacity);
    schedule->steps[schedule->step_count++] = *step;
}

void hvd_emit_put(struct hvd_schedule *schedule, int64_t input, size_t bytes,
                  struct hvd_location to)
{
    if (bytes > 0) {
        append_step(schedule, &(struct hvd_step){.kind = HVD_STEP_PUT,
                                                 .bytes = bytes,
                                                 .put = {.input = input, .to = to}});
    }
}

void hvd_emit_get(struct hvd_schedule *schedule, struct hvd_location from, int64_t output,
                  size_t bytes)
{
    if (bytes > 0) {
        append_step(schedule,
                    &(struct hvd_step){.kind = HVD_STEP_GET,
                                       .bytes = bytes,
                                       .get = {.from = from, .output = output}});
    }
}

void hvd_emit_reduce_local(struct hvd_schedule *schedule, struct hvd_location from,
                           int64_t input, size_t count, struct hvd_location to)
{
    if (count > 0) {
        append_step(schedule,
                    &(struct hvd_step){
                        .kind = HVD_STEP_REDUCE_LOCAL,
                        .count = count,
                        .reduce_local = {.sources = {.from = from, .input = input},
                                         .to = to,
                                         .is_partial = to.kind == HVD_LOCATION_SEND},
                    });
    }
}

struct hvd_range hvd_schedule_wanted(const struct hvd_schedule *schedule)
{
    const struct hvd_schedule_query *query = &schedule->query;

    if (query->collective == HVD_COLL_REDUCESCATTER) {
        return (struct hvd_range){query->part_begin, query->part_count};
    }
    return (struct hvd_range){0, query->count};
}

bool hvd_schedule_is_unread(const struct hvd_schedule *schedule)
{
    return schedule->query.is_for_root && schedule->query.root == schedule->query.rank;
}

void hvd_emit_reduce_out(struct hvd_schedule *schedule, struct hvd_location from,
                         int64_t input, size_t count, int64_t output)
{
    bool is_put = schedule->local_size > 1 && !hvd_schedule_is_unread(schedule);

    if (count > 0) {
        append_step(schedule, &(struct hvd_step){
                                  .kind = HVD_STEP_REDUCE_OUT,
                                  .count = count,
                                  .reduce_out = {.sources = {from, input, is_put},
                                                 .output = output},
                              });
    }
}

void hvd_emit_reduce_nodes(struct hvd_schedule *schedule,
                           const struct hvd_node_sources *sources, size_t count,
                           struct hvd_location to)
{
    if (count > 0) {
        append_step(schedule,
                    &(struct hvd_step){
                        .kind = HVD_STEP_REDUCE_NODES,
                        .count = count,
                        .reduce_nodes = {.sources = *sources,
                                         .to = to,
                                         .is_partial = to.kind != HVD_LOCATION_OUT},
                    });
    }
}

void hvd_emit_copy(struct hvd_schedule *schedule, int64_t input, int64_t output,
                   size_t bytes)
{
    if (bytes > 0) {
        append_step(schedule,
                    &(struct hvd_step){.kind = HVD_STEP_COPY,
                                       .bytes = bytes,
                                       .copy = {.input = input, .output = output}});
    }
}

void hvd_emit_offer(struct hvd_schedule *schedule, bool is_output, int64_t begin,
                    size_t bytes, struct hvd_location to)
{
    if (bytes > 0) {
        append_step(schedule,
                    &(struct hvd_step){
                        .kind = HVD_STEP_OFFER,
                        .offer = {.is_output = is_output, .begin = begin, .to = to}});
    }
}

void hvd_emit_fetch(struct hvd_schedule *schedule, struct hvd_location offer, int64_t at,
                    int64_t output, size_t bytes)
{
    if (bytes > 0) {
        append_step(schedule,
                    &(struct hvd_step){
                        .kind = HVD_STEP_FETCH,
                        .bytes = bytes,
                        .fetch = {.from = {.offer = offer, .at = at}, .output = output}});
    }
}

void hvd_emit_fetch_reduce(struct hvd_schedule *schedule, struct hvd_location offer,
                           int64_t at, size_t count, int64_t output,
                           struct hvd_location scratch)
{
    size_t bytes = count * schedule->query.element_bytes;

    if (count > 0) {
        append_step(schedule, &(struct hvd_step){
                                  .kind = HVD_STEP_FETCH_REDUCE,
                                  .bytes = bytes,
                                  .count = count,
                                  .fetch_reduce = {.from = {.offer = offer, .at = at},
                                                   .scratch = scratch,
                                                   .stride = (bytes + 63) / 64 * 64,
                                                   .output = output},
                              });
    }
}

void hvd_emit_store(struct hvd_schedule *schedule, struct hvd_location offer, int64_t at,
                    int64_t input, size_t bytes)
{
    if (bytes > 0) {
        append_step(schedule,
                    &(struct hvd_step){
                        .kind = HVD_STEP_STORE,
                        .bytes = bytes,
                        .store = {.input = input, .to = {.offer = offer, .at = at}}});
    }
}

void hvd_emit_signal(struct hvd_schedule *schedule)
{
    append_step(schedule, &(struct hvd_step){.kind = HVD_STEP_SIGNAL});
    schedule->signalled++;
}

void hvd_emit_wait(struct hvd_schedule *schedule, int local_rank, uint64_t value)
{
    append_step(schedule,
                &(struct hvd_step){.kind = HVD_STEP_WAIT, .wait = {local_rank, value}});
}

void hvd_emit_wait_all(struct hvd_schedule *schedule, uint64_t value)
{
    hvd_emit_wait(schedule, -1, value);
}

void hvd_emit_sync(struct hvd_schedule *schedule)
{
    hvd_emit_signal(schedule);
    hvd_emit_wait_all(schedule, schedule->signalled);
}

void hvd_emit_send(struct hvd_schedule *schedule, struct hvd_location from, size_t bytes,
                   int peer)
{
    if (bytes > 0) {
        append_step(schedule, &(struct hvd_step){.kind = HVD_STEP_SEND,
                                                 .bytes = bytes,
                                                 .send = {.from = from, .peer = peer}});
        schedule->posted.sends++;
    }
}

void hvd_emit_recv(struct hvd_schedule *schedule, struct hvd_location to, size_t bytes,
                   int peer)
{
    if (bytes > 0) {
        append_step(schedule, &(struct hvd_step){.kind = HVD_STEP_RECV,
                                                 .bytes = bytes,
                                                 .recv = {.to = to, .peer = peer}});
        schedule->posted.recvs++;
    }
}

void hvd_emit_recv_reduce(struct hvd_schedule *schedule,
                          const struct hvd_arrival *arrival, int peer)
{
    const struct hvd_schedule_query *query = &schedule->query;
    size_t bytes = arrival->is_partial ? query->partial_bytes : query->element_bytes;
    struct hvd_step step = {.kind = HVD_STEP_RECV_REDUCE,
                            .bytes = arrival->count * bytes,
                            .count = arrival->count,
                            .recv_reduce = {.own = arrival->own,
                                            .to_output = arrival->to == NULL,
                                            .output = arrival->output,
                                            .is_partial = arrival->is_partial,
                                            .peer = peer}};

    if (arrival->to != NULL) {
        step.recv_reduce.to = *arrival->to;
    }
    if (arrival->count > 0) {
        append_step(schedule, &step);
        schedule->posted.recvs++;
    }
}

void hvd_emit_wait_sends(struct hvd_schedule *schedule, uint64_t count)
{
    if (count > 0) {
        append_step(schedule,
                    &(struct hvd_step){.kind = HVD_STEP_WAIT_SEND, .messages = count});
    }
}

void hvd_emit_wait_recvs(struct hvd_schedule *schedule, uint64_t count)
{
    if (count > 0) {
        append_step(schedule,
                    &(struct hvd_step){.kind = HVD_STEP_WAIT_RECV, .messages = count});
    }
}
