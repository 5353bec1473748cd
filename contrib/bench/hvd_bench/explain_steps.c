/* SPDX-License-Identifier: Apache-2.0 */
/* Steps in words. */
#include "contrib/bench/hvd_bench/explain_steps.h"

#include <inttypes.h>

#include "contrib/bench/hvd_bench/sizes.h"

enum {
    MOST_STEPS = 256 /* of a tick that are compared with the next tick's */
};

/* What makes ticks alike. */
struct shape {
    int count;
    struct {
        enum hvd_step_kind kind;
        int peer;
    } steps[MOST_STEPS];
};

static const char *const place_names[] = {
    [HVD_PLACE_IN] = "IN",     [HVD_PLACE_OUT] = "OUT",   [HVD_PLACE_LINE] = "LINE",
    [HVD_PLACE_SEND] = "SEND", [HVD_PLACE_RECV] = "RECV",
};

static void add_step(const struct hvd_step *step, const struct hvd_schedule_query *query,
                     struct bench_totals *totals)
{
    switch (step->kind) {
    case HVD_STEP_PUT:
        totals->bytes[BENCH_TOTAL_IN] += (int64_t)step->bytes;
        break;
    case HVD_STEP_GET:
    case HVD_STEP_COPY:
    case HVD_STEP_FETCH:
    case HVD_STEP_STORE:
        totals->bytes[BENCH_TOTAL_OUT] += (int64_t)step->bytes;
        break;
    case HVD_STEP_REDUCE_OUT:
    case HVD_STEP_FETCH_REDUCE:
        totals->bytes[BENCH_TOTAL_OUT] += (int64_t)(step->count * query->element_bytes);
        totals->bytes[BENCH_TOTAL_ADDED] += (int64_t)(step->count * query->element_bytes);
        break;
    case HVD_STEP_REDUCE_LOCAL:
    case HVD_STEP_REDUCE_NODES:
        totals->bytes[BENCH_TOTAL_ADDED] += (int64_t)(step->count * query->element_bytes);
        break;
    case HVD_STEP_SEND:
        totals->bytes[BENCH_TOTAL_SENT] += (int64_t)step->bytes;
        break;
    case HVD_STEP_RECV:
        totals->bytes[BENCH_TOTAL_RECEIVED] += (int64_t)step->bytes;
        break;
    case HVD_STEP_RECV_REDUCE:
        totals->bytes[BENCH_TOTAL_RECEIVED] += (int64_t)step->bytes;
        totals->bytes[BENCH_TOTAL_ADDED] += (int64_t)(step->count * query->element_bytes);
        totals->bytes[BENCH_TOTAL_OUT] +=
            step->to_output ? (int64_t)(step->count * query->element_bytes) : 0;
        break;
    case HVD_STEP_WAIT:
        totals->waits++;
        break;
    default:
        break;
    }
}

struct bench_totals bench_totals_of(struct hvd_schedule *schedule,
                                    const struct hvd_schedule_query *query)
{
    struct bench_totals totals = {0};
    int64_t ticks = hvd_schedule_facts(schedule)->ticks;

    for (int64_t tick = 0; tick < ticks; tick++) {
        const struct hvd_step *steps;
        int count = hvd_schedule_tick(schedule, tick, &steps);

        for (int i = 0; i < count; i++) {
            add_step(&steps[i], query, &totals);
        }
    }
    return totals;
}

static void print_place(const struct hvd_place *place, FILE *out)
{
    if (place->kind != HVD_PLACE_SEND && place->kind != HVD_PLACE_RECV) {
        fprintf(out, "%s %d of local rank %d", place_names[place->kind], place->slot,
                place->local_rank);
    } else {
        fprintf(out, "%s %d", place_names[place->kind], place->slot);
    }
    if (place->offset != 0) {
        fprintf(out, " + %zu", place->offset);
    }
}

static void print_copy(const struct hvd_step *step, FILE *out)
{
    char size[32];

    bench_size_write((int64_t)step->bytes, size, sizeof(size));
    if (step->kind == HVD_STEP_PUT) {
        fprintf(out, "put      %s of the input from byte %" PRId64 " to ", size,
                step->begin);
        print_place(&step->to, out);
    } else {
        fprintf(out, "get      %s from ", size);
        print_place(&step->from, out);
        fprintf(out, " to the output at byte %" PRId64, step->begin);
    }
}

static void print_add(const struct hvd_step *step, FILE *out)
{
    fprintf(out, "add      %zu elements of all %s, at ", step->count,
            step->kind == HVD_STEP_REDUCE_NODES ? "nodes" : "local ranks");
    print_place(&step->from, out);
    fprintf(out, ", into ");
    if (step->kind == HVD_STEP_REDUCE_OUT) {
        fprintf(out, "the output at byte %" PRId64, step->begin);
    } else {
        print_place(&step->to, out);
    }
}

static void print_message(const struct hvd_step *step, FILE *out)
{
    char size[32];
    bool sends = step->kind == HVD_STEP_SEND;

    bench_size_write((int64_t)step->bytes, size, sizeof(size));
    fprintf(out, "%s  %s %s rank %d, %s ", sends ? "send   " : "receive", size,
            sends ? "to" : "from", step->peer, sends ? "from" : "into");
    print_place(sends ? &step->from : &step->to, out);
}

static void print_sum(const struct hvd_step *step, FILE *out)
{
    char size[32];

    bench_size_write((int64_t)step->bytes, size, sizeof(size));
    fprintf(out, "receive  %s from rank %d, and add them to ", size, step->peer);
    print_place(&step->own, out);
    fprintf(out, ", into ");
    if (step->to_output) {
        fprintf(out, "the output at byte %" PRId64, step->begin);
    } else {
        print_place(&step->to, out);
    }
}

/* What is read or written where it is. */
static void print_reach(const struct hvd_step *step, FILE *out)
{
    char size[32];

    bench_size_write((int64_t)step->bytes, size, sizeof(size));
    if (step->kind == HVD_STEP_OFFER) {
        fprintf(out, "offer    the %s from byte %" PRId64 " on, in ",
                step->to_output ? "output" : "input", step->begin);
        print_place(&step->to, out);
    } else if (step->kind == HVD_STEP_COPY) {
        fprintf(out,
                "copy     %s of the input from byte %" PRId64
                " to the output at byte %" PRId64,
                size, step->input, step->begin);
    } else if (step->kind == HVD_STEP_FETCH_REDUCE) {
        fprintf(out,
                "fetch    %s from byte %" PRId64
                " of what all others offer, and add them to mine",
                size, step->input);
        fprintf(out, ", into the output at byte %" PRId64, step->begin);
    } else if (step->kind == HVD_STEP_FETCH) {
        fprintf(out, "fetch    %s from byte %" PRId64 " of what local rank %d offers",
                size, step->input, step->from.local_rank);
        fprintf(out, ", to the output at byte %" PRId64, step->begin);
    } else {
        fprintf(out, "store    %s of the input from byte %" PRId64, size, step->begin);
        fprintf(out, " at byte %" PRId64 " of what local rank %d offers", step->input,
                step->from.local_rank);
    }
}

static void print_wait(const struct hvd_step *step, FILE *out)
{
    int64_t value = (int64_t)step->value;

    fprintf(out, "wait     until ");
    fprintf(out, step->peer < 0 ? "all local ranks have" : "local rank %d has",
            step->peer);
    if (value >= 0) {
        fprintf(out, " signalled %" PRId64 " times", value);
    } else {
        fprintf(out, " given all but %" PRId64 " of the signals of before", -value);
    }
}

static void print_step(const struct hvd_step *step, FILE *out)
{
    fprintf(out, "          ");
    switch (step->kind) {
    case HVD_STEP_PUT:
    case HVD_STEP_GET:
        print_copy(step, out);
        break;
    case HVD_STEP_COPY:
    case HVD_STEP_OFFER:
    case HVD_STEP_FETCH:
    case HVD_STEP_FETCH_REDUCE:
    case HVD_STEP_STORE:
        print_reach(step, out);
        break;
    case HVD_STEP_REDUCE_LOCAL:
    case HVD_STEP_REDUCE_OUT:
    case HVD_STEP_REDUCE_NODES:
        print_add(step, out);
        break;
    case HVD_STEP_SEND:
    case HVD_STEP_RECV:
        print_message(step, out);
        break;
    case HVD_STEP_RECV_REDUCE:
        print_sum(step, out);
        break;
    case HVD_STEP_SIGNAL:
        fprintf(out, "signal");
        break;
    case HVD_STEP_WAIT:
        print_wait(step, out);
        break;
    default:
        fprintf(out, "wait     for the first %" PRIu64 " %s", step->value,
                step->kind == HVD_STEP_WAIT_SEND ? "sends" : "receives");
        break;
    }
    fputc('\n', out);
}

static void take_shape(const struct hvd_step *steps, int count, struct shape *shape)
{
    shape->count = count;
    for (int i = 0; i < count && i < MOST_STEPS; i++) {
        shape->steps[i].kind = steps[i].kind;
        shape->steps[i].peer = steps[i].peer;
    }
}

static bool has_shape(const struct hvd_step *steps, int count, const struct shape *shape)
{
    bool same = count == shape->count && count <= MOST_STEPS;

    for (int i = 0; same && i < count; i++) {
        same = steps[i].kind == shape->steps[i].kind &&
               steps[i].peer == shape->steps[i].peer;
    }
    return same;
}

static void print_alike(int64_t alike, FILE *out)
{
    if (alike > 0) {
        fprintf(out, "          ... %" PRId64 " more tick%s like this\n", alike,
                alike == 1 ? "" : "s");
    }
}

void bench_steps_print(struct hvd_schedule *schedule, FILE *out)
{
    int64_t ticks = hvd_schedule_facts(schedule)->ticks, alike = 0;
    struct shape shape = {.count = -1};

    for (int64_t tick = 0; tick < ticks; tick++) {
        const struct hvd_step *steps;
        int count = hvd_schedule_tick(schedule, tick, &steps);

        if (has_shape(steps, count, &shape)) {
            alike++;
            continue;
        }
        print_alike(alike, out);
        alike = 0;
        take_shape(steps, count, &shape);
        fprintf(out, "  tick %" PRId64 "\n", tick);
        for (int i = 0; i < count; i++) {
            print_step(&steps[i], out);
        }
    }
    print_alike(alike, out);
}
