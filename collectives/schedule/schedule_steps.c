/* SPDX-License-Identifier: Apache-2.0 */
/* Appending steps, and counting the signals and messages among them. */
#include "collectives/schedule/schedule_steps.h"

#include <assert.h>
#include <string.h>

struct hvd_place hvd_place_of(enum hvd_place_kind kind, int local_rank, int slot,
                              size_t offset)
{
    return (struct hvd_place){kind, local_rank, slot, offset};
}

static struct hvd_step *append(struct hvd_schedule *schedule, enum hvd_step_kind kind)
{
    struct hvd_step *step = &schedule->steps[schedule->step_count];

    assert(schedule->step_count < schedule->step_capacity);
    schedule->step_count++;
    memset(step, 0, sizeof(*step));
    step->kind = kind;
    step->peer = -1;
    return step;
}

void hvd_emit_put(struct hvd_schedule *schedule, int64_t begin, size_t bytes,
                  struct hvd_place to)
{
    if (bytes > 0) {
        struct hvd_step *step = append(schedule, HVD_STEP_PUT);

        step->begin = begin;
        step->bytes = bytes;
        step->to = to;
    }
}

void hvd_emit_get(struct hvd_schedule *schedule, struct hvd_place from, int64_t begin,
                  size_t bytes)
{
    if (bytes > 0) {
        struct hvd_step *step = append(schedule, HVD_STEP_GET);

        step->from = from;
        step->begin = begin;
        step->bytes = bytes;
    }
}

void hvd_emit_reduce_local(struct hvd_schedule *schedule, struct hvd_place from,
                           int64_t input, size_t count, struct hvd_place to)
{
    if (count > 0) {
        struct hvd_step *step = append(schedule, HVD_STEP_REDUCE_LOCAL);

        step->from = from;
        step->to = to;
        step->input = input;
        step->count = count;
        step->is_partial = to.kind == HVD_PLACE_SEND;
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

void hvd_emit_reduce_out(struct hvd_schedule *schedule, struct hvd_place from,
                         int64_t input, size_t count, int64_t begin)
{
    if (count > 0) {
        struct hvd_step *step = append(schedule, HVD_STEP_REDUCE_OUT);

        step->from = from;
        step->input = input;
        step->is_put = schedule->local_size > 1 && !hvd_schedule_is_unread(schedule);
        step->count = count;
        step->begin = begin;
    }
}

void hvd_emit_reduce_nodes(struct hvd_schedule *schedule,
                           const struct hvd_sources *sources, size_t count,
                           struct hvd_place to)
{
    if (count > 0) {
        struct hvd_step *step = append(schedule, HVD_STEP_REDUCE_NODES);

        step->from = sources->from;
        step->stride = sources->stride;
        step->sources = sources->count;
        step->own_number = sources->own_number;
        step->own = sources->own;
        step->to = to;
        step->count = count;
        step->is_partial = to.kind != HVD_PLACE_OUT;
    }
}

void hvd_emit_copy(struct hvd_schedule *schedule, int64_t input, int64_t begin,
                   size_t bytes)
{
    if (bytes > 0) {
        struct hvd_step *step = append(schedule, HVD_STEP_COPY);

        step->input = input;
        step->begin = begin;
        step->bytes = bytes;
    }
}

void hvd_emit_offer(struct hvd_schedule *schedule, bool is_output, int64_t begin,
                    size_t bytes, struct hvd_place to)
{
    if (bytes > 0) {
        struct hvd_step *step = append(schedule, HVD_STEP_OFFER);

        step->to = to;
        step->to_output = is_output;
        step->begin = begin;
    }
}

static void emit_reach(struct hvd_schedule *schedule, const struct hvd_step *reach)
{
    if (reach->bytes > 0) {
        *append(schedule, reach->kind) = *reach;
    }
}

void hvd_emit_fetch(struct hvd_schedule *schedule, struct hvd_place offer, int64_t at,
                    int64_t begin, size_t bytes)
{
    emit_reach(schedule, &(struct hvd_step){.kind = HVD_STEP_FETCH,
                                            .from = offer,
                                            .peer = -1,
                                            .input = at,
                                            .begin = begin,
                                            .bytes = bytes});
}

void hvd_emit_fetch_reduce(struct hvd_schedule *schedule, struct hvd_place offer,
                           int64_t at, size_t count, int64_t begin,
                           struct hvd_place scratch)
{
    size_t bytes = count * schedule->query.element_bytes;

    emit_reach(schedule, &(struct hvd_step){.kind = HVD_STEP_FETCH_REDUCE,
                                            .from = offer,
                                            .to = scratch,
                                            .peer = -1,
                                            .input = at,
                                            .begin = begin,
                                            .bytes = bytes,
                                            .count = count,
                                            .stride = (bytes + 63) / 64 * 64});
}

void hvd_emit_store(struct hvd_schedule *schedule, struct hvd_place offer, int64_t at,
                    int64_t begin, size_t bytes)
{
    emit_reach(schedule, &(struct hvd_step){.kind = HVD_STEP_STORE,
                                            .from = offer,
                                            .peer = -1,
                                            .input = at,
                                            .begin = begin,
                                            .bytes = bytes});
}

void hvd_emit_signal(struct hvd_schedule *schedule)
{
    append(schedule, HVD_STEP_SIGNAL);
    schedule->signalled++;
}

void hvd_emit_wait(struct hvd_schedule *schedule, int local_rank, uint64_t value)
{
    struct hvd_step *step = append(schedule, HVD_STEP_WAIT);

    step->peer = local_rank;
    step->value = value;
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

void hvd_emit_send(struct hvd_schedule *schedule, struct hvd_place from, size_t bytes,
                   int peer)
{
    if (bytes > 0) {
        struct hvd_step *step = append(schedule, HVD_STEP_SEND);

        step->from = from;
        step->bytes = bytes;
        step->peer = peer;
        schedule->posted.sends++;
    }
}

void hvd_emit_recv(struct hvd_schedule *schedule, struct hvd_place to, size_t bytes,
                   int peer)
{
    if (bytes > 0) {
        struct hvd_step *step = append(schedule, HVD_STEP_RECV);

        step->to = to;
        step->bytes = bytes;
        step->peer = peer;
        schedule->posted.recvs++;
    }
}

void hvd_emit_recv_reduce(struct hvd_schedule *schedule,
                          const struct hvd_arrival *arrival, int peer)
{
    const struct hvd_schedule_query *query = &schedule->query;

    if (arrival->count > 0) {
        struct hvd_step *step = append(schedule, HVD_STEP_RECV_REDUCE);

        step->own = arrival->own;
        step->to = arrival->to != NULL ? *arrival->to : step->to;
        step->to_output = arrival->to == NULL;
        step->begin = arrival->begin;
        step->count = arrival->count;
        step->is_partial = arrival->is_partial;
        step->bytes = arrival->count *
                      (step->is_partial ? query->partial_bytes : query->element_bytes);
        step->peer = peer;
        schedule->posted.recvs++;
    }
}

void hvd_emit_wait_sends(struct hvd_schedule *schedule, uint64_t count)
{
    if (count > 0) {
        append(schedule, HVD_STEP_WAIT_SEND)->value = count;
    }
}

void hvd_emit_wait_recvs(struct hvd_schedule *schedule, uint64_t count)
{
    if (count > 0) {
        append(schedule, HVD_STEP_WAIT_RECV)->value = count;
    }
}
