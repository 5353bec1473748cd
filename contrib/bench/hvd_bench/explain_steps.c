/* SPDX-License-Identifier: Apache-2.0 */
/* Steps in words. */
#include "contrib/bench/hvd_bench/explain_steps.h"

#include <inttypes.h>
#include <stddef.h>

#include "contrib/bench/hvd_bench/sizes.h"

enum {
    MOST_STEPS = 256 /* of a tick that are compared with the next tick's */
};

/* Ticks of one shape are alike. */
struct shape {
    int count;
    struct {
        enum hvd_step_kind kind;
        int peer;
    } steps[MOST_STEPS];
};

/* A step's effect on the totals, its words, and where in struct hvd_step that which they name is; 0: the
 * kind has no such member.
 *   %s  size               %c  elements                  %r  peer
 *   %f %t  places          %i %o  bytes of the tensors   %x  the output, or the place to
 *   %a  byte of an offer   %l  the rank that offers it   %d  output or input
 *   %p  signals            %v  messages */
#define AT(member) offsetof(struct hvd_step, member)
static const struct kind {
    int total; /* of the bytes; -1: none */
    bool adds; /* its elements count as added */
    const char *words;
    size_t from, to; /* places */
    size_t input, output; /* bytes */
    size_t reach;
    size_t peer;
} kinds[] = {
    [HVD_STEP_PUT] = {BENCH_TOTAL_IN, false,
                      "put      %s of the input from byte %i to %t",
                      .input = AT(put.input), .to = AT(put.to)},
    [HVD_STEP_GET] = {BENCH_TOTAL_OUT, false,
                      "get      %s from %f to the output at byte %o",
                      .from = AT(get.from), .output = AT(get.output)},
    [HVD_STEP_REDUCE_LOCAL] = {-1, true,
                               "add      %c elements of all local ranks, at %f, into %t",
                               .from = AT(reduce_local.sources.from),
                               .to = AT(reduce_local.to)},
    [HVD_STEP_REDUCE_OUT] = {-1, true,
                             "add      %c elements of all local ranks, at %f, into the "
                             "output at byte %o",
                             .from = AT(reduce_out.sources.from),
                             .output = AT(reduce_out.output)},
    [HVD_STEP_REDUCE_NODES] = {-1, true,
                               "add      %c elements of all nodes, at %f, into %t",
                               .from = AT(reduce_nodes.sources.from),
                               .to = AT(reduce_nodes.to)},
    [HVD_STEP_SIGNAL] = {-1, false, "signal"},
    [HVD_STEP_WAIT] = {-1, false, "wait     until %p", .peer = AT(wait.local_rank)},
    [HVD_STEP_SEND] = {BENCH_TOTAL_SENT, false, "send     %s to rank %r, from %f",
                       .from = AT(send.from), .peer = AT(send.peer)},
    [HVD_STEP_RECV] = {BENCH_TOTAL_RECEIVED, false, "receive  %s from rank %r, into %t",
                       .to = AT(recv.to), .peer = AT(recv.peer)},
    [HVD_STEP_RECV_REDUCE] = {BENCH_TOTAL_RECEIVED, true,
                              "receive  %s from rank %r, and add them to %f, into %x",
                              .from = AT(recv_reduce.own), .to = AT(recv_reduce.to),
                              .output = AT(recv_reduce.output),
                              .peer = AT(recv_reduce.peer)},
    [HVD_STEP_COPY] = {BENCH_TOTAL_OUT, false,
                       "copy     %s of the input from byte %i to the output at byte %o",
                       .input = AT(copy.input), .output = AT(copy.output)},
    [HVD_STEP_OFFER] = {-1, false, "offer    the %d from byte %i on, in %t",
                        .input = AT(offer.begin), .to = AT(offer.to)},
    [HVD_STEP_FETCH] = {BENCH_TOTAL_OUT, false,
                        "fetch    %s from byte %a of what local rank %l offers, to the "
                        "output at byte %o",
                        .reach = AT(fetch.from), .output = AT(fetch.output)},
    [HVD_STEP_FETCH_REDUCE] = {-1, true,
                               "fetch    %s from byte %a of what all others offer, and "
                               "add them to mine, into the output at byte %o",
                               .reach = AT(fetch_reduce.from),
                               .output = AT(fetch_reduce.output)},
    [HVD_STEP_STORE] = {BENCH_TOTAL_OUT, false,
                        "store    %s of the input from byte %i at byte %a of what local "
                        "rank %l offers",
                        .input = AT(store.input), .reach = AT(store.to)},
    [HVD_STEP_WAIT_SEND] = {-1, false, "wait     for the first %v sends"},
    [HVD_STEP_WAIT_RECV] = {-1, false, "wait     for the first %v receives"},
};

static const void *member_of(const struct hvd_step *step, size_t at)
{
    return (const char *)step + at;
}

static int64_t byte_of(const struct hvd_step *step, size_t at)
{
    return *(const int64_t *)member_of(step, at);
}

/* The rank that a step waits for or exchanges a message with; -1: none, or all. */
static int peer_of(const struct hvd_step *step)
{
    const size_t at = kinds[step->kind].peer;

    return at != 0 ? *(const int *)member_of(step, at) : -1;
}

static void add_step(const struct hvd_step *step, const struct hvd_schedule_query *query,
                     struct bench_totals *totals)
{
    int64_t added =
        kinds[step->kind].adds ? (int64_t)(step->count * query->element_bytes) : 0;
    bool is_result = step->kind == HVD_STEP_REDUCE_OUT ||
                     step->kind == HVD_STEP_FETCH_REDUCE ||
                     (step->kind == HVD_STEP_RECV_REDUCE && step->recv_reduce.to_output);

    if (kinds[step->kind].total >= 0) {
        totals->bytes[kinds[step->kind].total] += (int64_t)step->bytes;
    }
    totals->bytes[BENCH_TOTAL_ADDED] += added;
    totals->bytes[BENCH_TOTAL_OUT] += is_result ? added : 0;
    totals->waits += step->kind == HVD_STEP_WAIT;
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
    static const char *const names[] = {
        [HVD_PLACE_IN] = "IN",     [HVD_PLACE_OUT] = "OUT",   [HVD_PLACE_LINE] = "LINE",
        [HVD_PLACE_SEND] = "SEND", [HVD_PLACE_RECV] = "RECV",
    };

    fprintf(out, "%s %d", names[place->kind], place->slot);
    if (place->kind != HVD_PLACE_SEND && place->kind != HVD_PLACE_RECV) {
        fprintf(out, " of local rank %d", place->local_rank);
    }
    if (place->offset != 0) {
        fprintf(out, " + %zu", place->offset);
    }
}

static void print_signals(const struct hvd_step *step, FILE *out)
{
    int64_t value = (int64_t)step->wait.value;

    fprintf(out, step->wait.local_rank < 0 ? "all local ranks have" : "local rank %d has",
            step->wait.local_rank);
    if (value >= 0) {
        fprintf(out, " signalled %" PRId64 " times", value);
    } else {
        fprintf(out, " given all but %" PRId64 " of the signals of before", -value);
    }
}

static void print_word(const struct hvd_step *step, char word, FILE *out)
{
    const struct kind *kind = &kinds[step->kind];
    const struct hvd_reach *reach = member_of(step, kind->reach);
    char size[32];

    switch (word) {
    case 's':
        fputs(bench_size_write((int64_t)step->bytes, size, sizeof(size)), out);
        break;
    case 'c':
        fprintf(out, "%zu", step->count);
        break;
    case 'r':
        fprintf(out, "%d", peer_of(step));
        break;
    case 'i':
        fprintf(out, "%" PRId64, byte_of(step, kind->input));
        break;
    case 'o':
        fprintf(out, "%" PRId64, byte_of(step, kind->output));
        break;
    case 'a':
        fprintf(out, "%" PRId64, reach->at);
        break;
    case 'l':
        fprintf(out, "%d", reach->offer.local_rank);
        break;
    case 'v':
        fprintf(out, "%" PRIu64, step->messages);
        break;
    case 'd':
        fputs(step->offer.is_output ? "output" : "input", out);
        break;
    case 'p':
        print_signals(step, out);
        break;
    case 'f':
        print_place(member_of(step, kind->from), out);
        break;
    default:
        if (word == 'x' && step->recv_reduce.to_output) {
            fprintf(out, "the output at byte %" PRId64, step->recv_reduce.output);
        } else {
            print_place(member_of(step, kind->to), out);
        }
        break;
    }
}

static void print_step(const struct hvd_step *step, FILE *out)
{
    fprintf(out, "          ");
    for (const char *at = kinds[step->kind].words; *at != '\0'; at++) {
        if (*at == '%') {
            print_word(step, *++at, out);
        } else {
            fputc(*at, out);
        }
    }
    fputc('\n', out);
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
