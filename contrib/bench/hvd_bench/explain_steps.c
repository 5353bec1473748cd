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
            step->recv_reduce.to_output ? (int64_t)(step->count * query->element_bytes)
                                        : 0;
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
                step->put.input);
        print_place(&step->put.to, out);
    } else {
        fprintf(out, "get      %s from ", size);
        print_place(&step->get.from, out);
        fprintf(out, " to the output at byte %" PRId64, step->get.output);
    }
}

/* to: NULL is the output, at byte `output`. */
static void print_target(const struct hvd_place *to, int64_t output, FILE *out)
{
    fprintf(out, ", into ");
    if (to == NULL) {
        fprintf(out, "the output at byte %" PRId64, output);
    } else {
        print_place(to, out);
    }
}

static void print_add(const struct hvd_step *step, FILE *out)
{
    fprintf(out, "add      %zu elements of all %s, at ", step->count,
            step->kind == HVD_STEP_REDUCE_NODES ? "nodes" : "local ranks");
    if (step->kind == HVD_STEP_REDUCE_OUT) {
        print_place(&step->reduce_out.sources.from, out);
        print_target(NULL, step->reduce_out.output, out);
    } else if (step->kind == HVD_STEP_REDUCE_LOCAL) {
        print_place(&step->reduce_local.sources.from, out);
        print_target(&step->reduce_local.to, 0, out);
    } else {
        print_place(&step->reduce_nodes.sources.from, out);
        print_target(&step->reduce_nodes.to, 0, out);
    }
}

static void print_message(const struct hvd_step *step, FILE *out)
{
    char size[32];
    bool sends = step->kind == HVD_STEP_SEND;

    bench_size_write((int64_t)step->bytes, size, sizeof(size));
    fprintf(out, "%s  %s %s rank %d, %s ", sends ? "send   " : "receive", size,
            sends ? "to" : "from", sends ? step->send.peer : step->recv.peer,
            sends ? "from" : "into");
    print_place(sends ? &step->send.from : &step->recv.to, out);
}

static void print_sum(const struct hvd_step *step, FILE *out)
{
    char size[32];

    bench_size_write((int64_t)step->bytes, size, sizeof(size));
    fprintf(out, "receive  %s from rank %d, and add them to ", size,
            step->recv_reduce.peer);
    print_place(&step->recv_reduce.own, out);
    print_target(step->recv_reduce.to_output ? NULL : &step->recv_reduce.to,
                 step->recv_reduce.output, out);
}

/* Steps that read or write another rank's memory, or could. */
static void print_reach(const struct hvd_step *step, FILE *out)
{
    char size[32];

    bench_size_write((int64_t)step->bytes, size, sizeof(size));
    switch (step->kind) {
    case HVD_STEP_OFFER:
        fprintf(out, "offer    the %s from byte %" PRId64 " on, in ",
                step->offer.is_output ? "output" : "input", step->offer.begin);
        print_place(&step->offer.to, out);
        break;
    case HVD_STEP_COPY:
        fprintf(out,
                "copy     %s of the input from byte %" PRId64
                " to the output at byte %" PRId64,
                size, step->copy.input, step->copy.output);
        break;
    case HVD_STEP_FETCH_REDUCE:
        fprintf(out,
                "fetch    %s from byte %" PRId64
                " of what all others offer, and add them to mine",
                size, step->fetch_reduce.from.at);
        print_target(NULL, step->fetch_reduce.output, out);
        break;
    case HVD_STEP_FETCH:
        fprintf(out, "fetch    %s from byte %" PRId64 " of what local rank %d offers",
                size, step->fetch.from.at, step->fetch.from.offer.local_rank);
        fprintf(out, ", to the output at byte %" PRId64, step->fetch.output);
        break;
    default:
        fprintf(out, "store    %s of the input from byte %" PRId64, size,
                step->store.input);
        fprintf(out, " at byte %" PRId64 " of what local rank %d offers",
                step->store.to.at, step->store.to.offer.local_rank);
        break;
    }
}

static void print_wait(const struct hvd_step *step, FILE *out)
{
    int64_t value = (int64_t)step->wait.value;

    fprintf(out, "wait     until ");
    fprintf(out, step->wait.local_rank < 0 ? "all local ranks have" : "local rank %d has",
            step->wait.local_rank);
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
        fprintf(out, "wait     for the first %" PRIu64 " %s", step->messages,
                step->kind == HVD_STEP_WAIT_SEND ? "sends" : "receives");
        break;
    }
    fputc('\n', out);
}

/* The rank that a step waits for or exchanges a message with; -1: none, or all. */
static int peer_of(const struct hvd_step *step)
{
    switch (step->kind) {
    case HVD_STEP_WAIT:
        return step->wait.local_rank;
    case HVD_STEP_SEND:
        return step->send.peer;
    case HVD_STEP_RECV:
        return step->recv.peer;
    case HVD_STEP_RECV_REDUCE:
        return step->recv_reduce.peer;
    default:
        return -1;
    }
}

static void take_shape(const struct hvd_step *steps, int count, struct shape *shape)
{
    shape->count = count;
    for (int i = 0; i < count && i < MOST_STEPS; i++) {
        shape->steps[i].kind = steps[i].kind;
        shape->steps[i].peer = peer_of(&steps[i]);
    }
}

static bool has_shape(const struct hvd_step *steps, int count, const struct shape *shape)
{
    bool same = count == shape->count && count <= MOST_STEPS;

    for (int i = 0; same && i < count; i++) {
        same = steps[i].kind == shape->steps[i].kind &&
               peer_of(&steps[i]) == shape->steps[i].peer;
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
