/* SPDX-License-Identifier: Apache-2.0 */
/* Walks through the schedules of all ranks and prints them. */
#include "contrib/bench/hvd_bench/explain.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/schedule/schedule.h"
#include "collectives/reduce/reduce.h"
#include "gpu_binding/base/number.h"

enum {
    MOST_RANKS = 4096,
    MOST_NODE_RANKS = 1024,
    SHOWN_RANKS = 32,
    /* ticks with more steps than this are always printed, because their shapes are not
     * compared */
    MOST_STEPS = 256
};

/* --- steps --- */

enum {
    TOTAL_IN, /* bytes copied from the input to shared memory or scratch */
    TOTAL_OUT, /* bytes written to the output */
    TOTAL_ADDED, /* bytes of sums */
    TOTAL_SENT,
    TOTAL_RECEIVED,
    TOTALS
};

struct totals {
    int64_t bytes[TOTALS];
    int64_t waits; /* waits for other ranks of the node */
};

/* The kinds and peers of the steps of one tick of a schedule. Consecutive ticks with the
 * same shape are printed once. */
struct shape {
    int count;
    struct {
        enum hvd_step_kind kind;
        int peer;
    } steps[MOST_STEPS];
};

/* For each kind of step: its effect on the totals, its text, and the offsets of the
 * members of struct hvd_step that the text names. An offset of 0: the kind has no such
 * member. Fields of the text:
 *   %s  size               %c  elements                  %r  peer
 *   %f %t  locations       %i %o  bytes of the tensors   %x  the output, or a location
 *   %a  byte of an offer   %l  the rank that offers it   %d  output or input
 *   %p  signals            %v  messages */
#define AT(member) offsetof(struct hvd_step, member)
static const struct kind {
    int total; /* the total to which the bytes are added; -1: none */
    bool adds; /* the bytes are also added to TOTAL_ADDED */
    const char *words;
    size_t from, to; /* locations */
    size_t input, output; /* offsets in bytes */
    size_t reach;
    size_t peer;
} kinds[] = {
    [HVD_STEP_PUT] = {.total = TOTAL_IN,
                      .words = "put      %s of the input from byte %i to %t",
                      .input = AT(put.input),
                      .to = AT(put.to)},
    [HVD_STEP_GET] = {.total = TOTAL_OUT,
                      .words = "get      %s from %f to the output at byte %o",
                      .from = AT(get.from),
                      .output = AT(get.output)},
    [HVD_STEP_REDUCE_LOCAL] =
        {.total = -1,
         .adds = true,
         .words = "add      %c elements of all local ranks, at %f, into %t",
         .from = AT(reduce_local.sources.from),
         .to = AT(reduce_local.to)},
    [HVD_STEP_REDUCE_OUT] =
        {.total = -1,
         .adds = true,
         .words = "add      %c elements of all local ranks, at %f, into the "
                  "output at byte %o",
         .from = AT(reduce_out.sources.from),
         .output = AT(reduce_out.output)},
    [HVD_STEP_REDUCE_NODES] = {.total = -1,
                               .adds = true,
                               .words =
                                   "add      %c elements of all nodes, at %f, into %t",
                               .from = AT(reduce_nodes.sources.from),
                               .to = AT(reduce_nodes.to)},
    [HVD_STEP_SIGNAL] = {.total = -1, .words = "signal"},
    [HVD_STEP_WAIT] = {.total = -1,
                       .words = "wait     until %p",
                       .peer = AT(wait.local_rank)},
    [HVD_STEP_SEND] = {.total = TOTAL_SENT,
                       .words = "send     %s to rank %r, from %f",
                       .from = AT(send.from),
                       .peer = AT(send.peer)},
    [HVD_STEP_RECV] = {.total = TOTAL_RECEIVED,
                       .words = "receive  %s from rank %r, into %t",
                       .to = AT(recv.to),
                       .peer = AT(recv.peer)},
    [HVD_STEP_RECV_REDUCE] = {.total = TOTAL_RECEIVED,
                              .adds = true,
                              .words =
                                  "receive  %s from rank %r, and add them to %f, into %x",
                              .from = AT(recv_reduce.own),
                              .to = AT(recv_reduce.to),
                              .output = AT(recv_reduce.output),
                              .peer = AT(recv_reduce.peer)},
    [HVD_STEP_COPY] =
        {.total = TOTAL_OUT,
         .words = "copy     %s of the input from byte %i to the output at byte %o",
         .input = AT(copy.input),
         .output = AT(copy.output)},
    [HVD_STEP_OFFER] = {.total = -1,
                        .words = "offer    the %d from byte %i on, in %t",
                        .input = AT(offer.begin),
                        .to = AT(offer.to)},
    [HVD_STEP_FETCH] =
        {.total = TOTAL_OUT,
         .words = "fetch    %s from byte %a of the memory that local rank %l offers, "
                  "to the output at byte %o",
         .reach = AT(fetch.from),
         .output = AT(fetch.output)},
    [HVD_STEP_FETCH_REDUCE] =
        {.total = -1,
         .adds = true,
         .words = "fetch    %s from byte %a of the memory that each other rank offers, "
                  "add them to mine, into the output at byte %o",
         .reach = AT(fetch_reduce.from),
         .output = AT(fetch_reduce.output)},
    [HVD_STEP_STORE] =
        {.total = TOTAL_OUT,
         .words = "store    %s of the input from byte %i at byte %a of the memory that "
                  "local rank %l offers",
         .input = AT(store.input),
         .reach = AT(store.to)},
    [HVD_STEP_WAIT_SEND] = {.total = -1, .words = "wait     for the first %v sends"},
    [HVD_STEP_WAIT_RECV] = {.total = -1, .words = "wait     for the first %v receives"},
};

static const void *member_of(const struct hvd_step *step, size_t at)
{
    return (const char *)step + at;
}

static int64_t byte_of(const struct hvd_step *step, size_t at)
{
    return *(const int64_t *)member_of(step, at);
}

/* Returns the rank that a step waits for or exchanges a message with; -1: none, or
 * all. */
static int peer_of(const struct hvd_step *step)
{
    const size_t at = kinds[step->kind].peer;

    return at != 0 ? *(const int *)member_of(step, at) : -1;
}

static void add_step(const struct hvd_step *step, const struct hvd_schedule_query *query,
                     struct totals *totals)
{
    int64_t added =
        kinds[step->kind].adds ? (int64_t)(step->count * query->element_bytes) : 0;
    bool is_result = step->kind == HVD_STEP_REDUCE_OUT ||
                     step->kind == HVD_STEP_FETCH_REDUCE ||
                     (step->kind == HVD_STEP_RECV_REDUCE && step->recv_reduce.to_output);

    if (kinds[step->kind].total >= 0) {
        totals->bytes[kinds[step->kind].total] += (int64_t)step->bytes;
    }
    totals->bytes[TOTAL_ADDED] += added;
    totals->bytes[TOTAL_OUT] += is_result ? added : 0;
    totals->waits += step->kind == HVD_STEP_WAIT;
}

static struct totals add_steps(struct hvd_schedule *schedule,
                               const struct hvd_schedule_query *query)
{
    struct totals totals = {0};
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

static void print_location(const struct hvd_location *location, FILE *out)
{
    static const char *const names[] = {
        [HVD_LOCATION_IN] = "IN",     [HVD_LOCATION_OUT] = "OUT",
        [HVD_LOCATION_LINE] = "LINE", [HVD_LOCATION_SEND] = "SEND",
        [HVD_LOCATION_RECV] = "RECV",
    };

    fprintf(out, "%s %d", names[location->kind], location->slot);
    if (location->kind != HVD_LOCATION_SEND && location->kind != HVD_LOCATION_RECV) {
        fprintf(out, " of local rank %d", location->local_rank);
    }
    if (location->offset != 0) {
        fprintf(out, " + %zu", location->offset);
    }
}

static void print_signals(const struct hvd_step *step, FILE *out)
{
    int64_t value = (int64_t)step->wait.value;

    fprintf(out, step->wait.local_rank < 0 ? "all local ranks have" : "local rank %d has",
            step->wait.local_rank);
    if (value >= 0) {
        fprintf(out, " signalled %" PRId64 " time%s", value, hvd_number_plural(value));
    } else {
        fprintf(out, " given all but %" PRId64 " of the earlier signals", -value);
    }
}

static void print_word(const struct hvd_step *step, char word, FILE *out)
{
    const struct kind *kind = &kinds[step->kind];
    const struct hvd_reach *reach = member_of(step, kind->reach);
    char size[32];

    switch (word) {
    case 's':
        fputs(hvd_algorithm_size_write((int64_t)step->bytes, size, sizeof(size)), out);
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
        print_location(member_of(step, kind->from), out);
        break;
    default:
        if (word == 'x' && step->recv_reduce.to_output) {
            fprintf(out, "the output at byte %" PRId64, step->recv_reduce.output);
        } else {
            print_location(member_of(step, kind->to), out);
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
                hvd_number_plural(alike));
    }
}

/* Prints a line for each step. It prints only the first of consecutive ticks that differ
 * in nothing but locations and numbers, and counts the others. */
static void print_steps(struct hvd_schedule *schedule, FILE *out)
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

/* --- layouts --- */

int bench_layout_parse(const char *text, struct hvd_layout *layout, struct hvd_error *err)
{
    char(*names)[16] = calloc(MOST_RANKS, sizeof(names[0]));
    const char **hosts = calloc(MOST_RANKS, sizeof(hosts[0]));
    int size = 0, status = 0;

    if (names == NULL || hosts == NULL) {
        status = hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    for (int node = 0; status == 0 && text != NULL; node++) {
        char *end;
        long ranks = strtol(text, &end, 10);

        if (end == text || (*end != ',' && *end != '\0') || ranks < 1 ||
            ranks > MOST_NODE_RANKS) {
            status = hvd_fail(err, HVD_ERR_ARG,
                              "--layout takes the ranks of each node, as 4,4, not \"%s\"",
                              text);
        } else if (size + ranks > MOST_RANKS) {
            status =
                hvd_fail(err, HVD_ERR_ARG, "--layout: more than %d ranks", MOST_RANKS);
        } else {
            snprintf(names[node], sizeof(names[node]), "node%d", node);
            while (ranks-- > 0) {
                hosts[size++] = names[node];
            }
            text = *end == ',' ? end + 1 : NULL;
        }
    }
    if (status == 0) {
        status = hvd_layout_init(layout, hosts, size, err);
    }
    free(names);
    free(hosts);
    return status;
}

const char *bench_layout_write(const struct hvd_layout *layout, char *text, size_t room)
{
    size_t used = 0;

    text[0] = '\0';
    for (int node = 0; node < layout->nodes && used < room; node++) {
        used += (size_t)snprintf(text + used, room - used, "%s%d", node > 0 ? "," : "",
                                 hvd_layout_local_size(layout, node));
    }
    return text;
}

/* --- schedules --- */

/* Where the block of each rank begins, for collectives in which every rank has a block;
 * and the algorithms to choose from. */
struct blocks {
    int64_t *begin;
    int64_t each; /* bytes of a block */
    struct hvd_algorithm_choices choices;
};

static const enum hvd_collective collectives[BENCH_COLLECTIVES] = {
    [BENCH_ALLREDUCE] = HVD_COLL_ALLREDUCE,
    [BENCH_ALLGATHER] = HVD_COLL_ALLGATHER,
    [BENCH_BROADCAST] = HVD_COLL_BROADCAST,
    [BENCH_ALLTOALL] = HVD_COLL_ALLTOALL,
    [BENCH_REDUCESCATTER] = HVD_COLL_REDUCESCATTER,
};

static int create_schedule(const struct bench_explain_query *query, int rank,
                           const struct blocks *blocks,
                           struct hvd_schedule_query *planned,
                           struct hvd_schedule **schedule, struct hvd_error *err)
{
    int64_t element = (int64_t)hvd_dtype_bytes(query->dtype);
    int64_t each = blocks->each / element;

    *planned = (struct hvd_schedule_query){
        .collective = collectives[query->collective],
        .choices = &blocks->choices,
        .layout = query->layout,
        .rank = rank,
        .geometry = hvd_usual_geometry,
        .element_bytes = (size_t)element,
        .partial_bytes = hvd_partial_bytes(query->dtype),
        .count = query->bytes / element,
        .bytes = query->bytes / element * element,
        .blocks = blocks->begin,
        .send = blocks->begin,
        .max_block = blocks->each,
    };
    if (query->collective == BENCH_REDUCESCATTER) {
        planned->count = each * query->layout->size;
        planned->part_begin = each * rank;
        planned->part_count = each;
    }
    return hvd_schedule_create(planned, schedule, err);
}

static int make_blocks(const struct bench_explain_query *query, struct blocks *blocks,
                       struct hvd_error *err)
{
    int64_t element = (int64_t)hvd_dtype_bytes(query->dtype);
    int size = query->layout->size;

    blocks->each = query->bytes / element / size * element;
    blocks->begin = calloc((size_t)size + 1, sizeof(blocks->begin[0]));
    for (int rank = 0; blocks->begin != NULL && rank <= size; rank++) {
        blocks->begin[rank] = blocks->each * rank;
    }
    return blocks->begin != NULL ? 0 : hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
}

/* Prints a line with the totals of each rank, then the steps of rank 0. */
static int print_schedules(const struct bench_explain_query *query,
                           const struct blocks *blocks, FILE *out, struct hvd_error *err)
{
    int size = query->layout->size, shown = size < SHOWN_RANKS ? size : SHOWN_RANKS;
    struct hvd_schedule_query planned;
    struct hvd_schedule *schedule;
    int status = 0;

    fprintf(out, "%5s %5s %-12s %7s %10s %10s %10s %10s %10s %6s\n", "rank", "node",
            "algorithm", "ticks", "in", "out", "added", "sent", "received", "waits");
    for (int rank = 0; rank < shown && status == 0; rank++) {
        status = create_schedule(query, rank, blocks, &planned, &schedule, err);
        if (status == 0) {
            const struct totals totals = add_steps(schedule, &planned);

            fprintf(out, "%5d %5d %-12s %7lld", rank, query->layout->node[rank],
                    hvd_schedule_facts(schedule)->name,
                    (long long)hvd_schedule_facts(schedule)->ticks);
            for (int i = 0; i < TOTALS; i++) {
                char size_text[32];

                fprintf(out, " %10s",
                        hvd_algorithm_size_write(totals.bytes[i], size_text,
                                                 sizeof(size_text)));
            }
            fprintf(out, " %6lld\n", (long long)totals.waits);
            hvd_schedule_destroy(schedule);
        }
    }
    if (size > shown) {
        fprintf(out, "  ... and %d more\n", size - shown);
    }
    if (status == 0) {
        status = create_schedule(query, 0, blocks, &planned, &schedule, err);
    }
    if (status == 0) {
        fprintf(out, "\nRank 0, tick by tick:\n");
        print_steps(schedule, out);
        hvd_schedule_destroy(schedule);
    }
    return status;
}

static struct hvd_job_shape shape_of(const struct bench_explain_query *query)
{
    struct hvd_job_shape shape = hvd_job_shape_of(query->layout);

    shape.cpu = query->cpu;
    return shape;
}

/* Prints which table the algorithms come from. */
static void print_table(const struct bench_explain_query *query, FILE *out)
{
    struct hvd_job_shape shape = shape_of(query);
    const struct hvd_algorithm_table *table = query->algorithms;
    const struct hvd_algorithm_section *section = hvd_algorithm_table_find(table, shape);

    if (table == NULL) {
        fprintf(out, "Algorithms: the built-in table%s",
                shape.cpu == HVD_PROCESSOR_AMD && shape.nodes == 1
                    ? " for processors of AMD"
                    : "");
    } else if (section == NULL) {
        fprintf(out,
                "Algorithms: the built-in table: %s has no section for %d node%s with up "
                "to %d rank%s",
                table->name, shape.nodes, hvd_number_plural(shape.nodes), shape.ranks,
                hvd_number_plural(shape.ranks));
    } else {
        fprintf(out, "Algorithms: %s, the section on line %d", table->name,
                section->line);
        if (section->measured[0] != '\0') {
            fprintf(out, " (measured %s)", section->measured);
        }
    }
    fputs(".\n", out);
}

/* Prints the row of the table that applies, and the sizes for which it does. */
static void print_choice(const struct bench_explain_query *query,
                         const struct blocks *blocks, FILE *out)
{
    enum hvd_collective kind = collectives[query->collective];
    const struct hvd_algorithm_rows *list = &blocks->choices.of[kind];
    const struct hvd_algorithm_row *row =
        hvd_algorithm_for(&blocks->choices, kind, query->bytes);
    bool is_last = row == &list->rows[list->count - 1];
    char size[32];

    print_table(query, out);
    fprintf(out, "It chooses \"%s\"%s", hvd_algorithm_name(row->algorithm),
            row->has_one_slice ? " by one rank of each node" : "");
    if (row->chunk_bytes > 0) {
        fprintf(out, ", in chunks of at most %s,",
                hvd_algorithm_size_write((int64_t)row->chunk_bytes, size, sizeof(size)));
    }
    fprintf(out, " for %s of %s bytes and more", hvd_collective_name(kind),
            hvd_algorithm_size_write(row->from, size, sizeof(size)));
    if (!is_last) {
        fprintf(out, ", below %s",
                hvd_algorithm_size_write(row[1].from, size, sizeof(size)));
    }
    if (row->line > 0) {
        fprintf(out, ": line %d", row->line);
    }
    fputs(".\n\n", out);
}

void bench_explain_list(FILE *out)
{
    for (int i = 0; i < HVD_ALGORITHMS; i++) {
        fprintf(out, "%-11s %s\n", hvd_algorithm_name((enum hvd_algorithm)i),
                hvd_algorithm_does((enum hvd_algorithm)i));
    }
}

int bench_explain(const struct bench_explain_query *query, FILE *out,
                  struct hvd_error *err)
{
    struct blocks blocks = {0};
    char size[32];
    int status;

    if (query->collective == BENCH_BARRIER) {
        return hvd_fail(
            err, HVD_ERR_UNSUPPORTED,
            "a barrier has no schedule: it ends when all ranks have agreed on it");
    }
    status = make_blocks(query, &blocks, err);
    if (status == 0) {
        fprintf(out, "%s of %s, %s: %d rank%s on %d node%s\n\n",
                bench_collective_name(query->collective),
                hvd_algorithm_size_write(query->bytes, size, sizeof(size)),
                hvd_dtype_name(query->dtype), query->layout->size,
                hvd_number_plural(query->layout->size), query->layout->nodes,
                hvd_number_plural(query->layout->nodes));
        hvd_algorithm_table_choose(query->algorithms, shape_of(query), &blocks.choices);
        print_choice(query, &blocks, out);
        status = print_schedules(query, &blocks, out, err);
    }
    free(blocks.begin);
    return status;
}
