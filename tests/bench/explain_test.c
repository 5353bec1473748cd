/* SPDX-License-Identifier: Apache-2.0 */
/* The printed schedules. */
#include "contrib/bench/hvd_bench/explain.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

/* Returns the printed text, which the caller frees; NULL on failure. */
static char *explain(enum bench_collective collective, int64_t bytes, const char *layout)
{
    struct bench_explain_query query = {
        .collective = collective, .bytes = bytes, .dtype = HVD_FLOAT32};
    struct hvd_layout ranks = {0};
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    int status = bench_layout_parse(layout, &ranks, NULL);

    query.layout = &ranks;
    status = status < 0 ? status : bench_explain(&query, out, NULL);
    fclose(out);
    hvd_layout_finish(&ranks);
    if (status < 0) {
        free(text);
        text = NULL;
    }
    return text;
}

static bool has(const char *text, const char *words)
{
    bool found = text != NULL && strstr(text, words) != NULL;

    if (!found) {
        tap_note("\"%s\" is missing", words);
    }
    return found;
}

/* Explains an allreduce on a layout of one node by a table with this text. */
static char *explain_by(const char *text, int64_t bytes, const char *layout)
{
    struct bench_explain_query query = {
        .collective = BENCH_ALLREDUCE, .bytes = bytes, .dtype = HVD_FLOAT32};
    struct hvd_algorithm_table *table = NULL;
    struct hvd_layout ranks = {0};
    char *explained = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&explained, &length);

    if (hvd_algorithm_table_parse("my/table", text, &table, NULL) == 0 &&
        bench_layout_parse(layout, &ranks, NULL) == 0) {
        query.algorithms = table;
        query.layout = &ranks;
        bench_explain(&query, out, NULL);
    }
    fclose(out);
    hvd_layout_finish(&ranks);
    hvd_algorithm_table_destroy(table);
    return explained;
}

static void test_table(void)
{
    static const char table[] = "[nodes=1 ranks=4]\nmeasured here\nallreduce 0 one_shot\n"
                                "allreduce 1K two_shot chunk=4K\nallreduce 1M one_shot\n";
    char *four = explain_by(table, 4096, "4");
    char *three = explain_by(table, 4096, "3");

    tap_ok(has(four, "my/table, the section on line 1 (measured here).") &&
               has(four, "\"two_shot\", in chunks of at most 4K, for allreduce of 1K "
                         "bytes and more, below 1M: "
                         "line 4.") &&
               has(four, " two_shot "),
           "the user's table is named, with the line of the row");
    tap_ok(has(three, "the built-in table: my/table has no section for 1 node with up "
                      "to 3 ranks."),
           "a table without a section for the layout is named");
    free(four);
    free(three);
}

/* Counts the lines of the table of ranks. */
static int count_ranks(const char *text)
{
    int count = 0, rank, node, used;
    char name[32];

    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += line[0] == '\n';
        used = 0;
        if (sscanf(line, "%5d %5d %12[a-z_]%n", &rank, &node, name, &used) == 3 &&
            used > 0) {
            count++;
        }
    }
    return count;
}

static bool refuses(const char *layout)
{
    struct hvd_layout ranks = {0};
    struct hvd_error err = {0};

    return bench_layout_parse(layout, &ranks, &err) == HVD_ERR_ARG &&
           strstr(err.text, "--layout") != NULL;
}

int main(void)
{
    char *one = explain(BENCH_ALLREDUCE, 64 << 20, "2");
    char *two = explain(BENCH_ALLREDUCE, 64 << 20, "2,2");
    bool all = true;

    tap_ok(has(one, "allreduce of 64M, float32: 2 ranks on 1 node") &&
               has(one, "Rank 0, tick by tick") && count_ranks(one) == 2,
           "one node: a line for each rank, then the steps");
    tap_ok(has(one, "the built-in table.") &&
               has(one, "\"one_shot\" for allreduce of 18M bytes and more.") &&
               has(two, "\"linear\", in chunks of at most 125K, for allreduce of 16385 "
                        "bytes and more."),
           "the reason for the algorithm is printed");
    test_table();
    tap_ok(has(one, "more ticks like this") && strstr(one, "send ") == NULL,
           "equal ticks are printed once; nothing is sent within a node");
    tap_ok(has(two, "4 ranks on 2 nodes") && has(two, "to rank 2") &&
               count_ranks(two) == 4,
           "two nodes: rank 0 sends to its counterpart");
    for (int collective = 0; collective < BENCH_BARRIER; collective++) {
        char *text = explain((enum bench_collective)collective, 4096, "3,1");

        all &= text != NULL && count_ranks(text) == 4;
        free(text);
    }
    tap_ok(all, "all collectives are explained, also on uneven nodes");
    tap_ok(explain(BENCH_BARRIER, 8, "2") == NULL, "a barrier has no schedule");
    tap_ok(refuses("") && refuses("2,") && refuses("0") && refuses("2;2") &&
               refuses("1000,1000,1000,1000,1000"),
           "invalid layouts are refused");
    free(one);
    free(two);
    return tap_done();
}
