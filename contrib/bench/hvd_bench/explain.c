/* SPDX-License-Identifier: Apache-2.0 */
/* Walks through schedules. */
#include "contrib/bench/hvd_bench/explain.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/schedule/schedule.h"
#include "collectives/reduce/reduce.h"
#include "contrib/bench/hvd_bench/explain_steps.h"
#include "contrib/bench/hvd_bench/sizes.h"

enum {
    MOST_RANKS = 4096,
    MOST_NODE_RANKS = 1024,
    SHOWN_RANKS = 32
};

/* Blocks of a collective in which each rank has one; [size + 1]. And how it is chosen. */
struct blocks {
    int64_t *begin;
    int64_t each; /* bytes */
    struct hvd_algorithm_choices choices;
};

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

static const enum hvd_collective kinds[BENCH_COLLECTIVES] = {
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
        .collective = kinds[query->collective],
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

/* A line for each rank, then the steps of rank 0. */
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
            const struct bench_totals totals = bench_totals_of(schedule, &planned);

            fprintf(out, "%5d %5d %-12s %7lld", rank, query->layout->node[rank],
                    hvd_schedule_facts(schedule)->name,
                    (long long)hvd_schedule_facts(schedule)->ticks);
            for (int i = 0; i < BENCH_TOTALS; i++) {
                char size_text[32];

                fprintf(out, " %10s",
                        bench_size_write(totals.bytes[i], size_text, sizeof(size_text)));
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
        bench_steps_print(schedule, out);
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

/* Where the choices come from. */
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
                table->name, shape.nodes, shape.nodes == 1 ? "" : "s", shape.ranks,
                shape.ranks == 1 ? "" : "s");
    } else {
        fprintf(out, "Algorithms: %s, the section on line %d", table->name,
                section->line);
        if (section->measured[0] != '\0') {
            fprintf(out, " (measured %s)", section->measured);
        }
    }
    fputs(".\n", out);
}

/* The row that holds, and between which sizes. */
static void print_choice(const struct bench_explain_query *query,
                         const struct blocks *blocks, FILE *out)
{
    enum hvd_collective kind = kinds[query->collective];
    const struct hvd_algorithm_rows *list = &blocks->choices.of[kind];
    const struct hvd_algorithm_row *row =
        hvd_algorithm_for(&blocks->choices, kind, query->bytes);
    bool is_last = row == &list->rows[list->count - 1];
    char size[32];

    print_table(query, out);
    fprintf(out, "There \"%s\"%s", hvd_algorithm_name(row->algorithm),
            row->has_one_lane ? " by one rank of each node" : "");
    if (row->chunk_bytes > 0) {
        fprintf(out, ", in chunks of at most %s,",
                hvd_algorithm_size_write((int64_t)row->chunk_bytes, size, sizeof(size)));
    }
    fprintf(out, " is for %s of %s bytes and more", hvd_collective_name(kind),
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
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "a barrier has no schedule: it ends when all have agreed on it");
    }
    status = make_blocks(query, &blocks, err);
    if (status == 0) {
        fprintf(out, "%s of %s, %s: %d rank%s on %d node%s\n\n",
                bench_collective_name(query->collective),
                bench_size_write(query->bytes, size, sizeof(size)),
                hvd_dtype_name(query->dtype), query->layout->size,
                query->layout->size == 1 ? "" : "s", query->layout->nodes,
                query->layout->nodes == 1 ? "" : "s");
        hvd_algorithm_table_choose(query->algorithms, shape_of(query), &blocks.choices);
        print_choice(query, &blocks, out);
        status = print_schedules(query, &blocks, out, err);
    }
    free(blocks.begin);
    return status;
}
