/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the schedule of each rank in a collective, without running it. */
#ifndef HVD_BENCH_EXPLAIN_H
#define HVD_BENCH_EXPLAIN_H

#include <stdio.h>

#include "collectives/schedule/algorithm_table.h"
#include "collectives/hvd.h"
#include "contrib/bench/hvd_bench/figures.h"
#include "pmix_boot/layout.h"

struct bench_explain_query {
    enum bench_collective collective;
    int64_t bytes; /* as in nccl-tests, rounded down to whole elements of each rank */
    enum hvd_dtype dtype;
    const struct hvd_layout *layout;
    const struct hvd_algorithm_table *algorithms; /* NULL: the built-in table */
    enum hvd_processor cpu; /* processor whose built-in table is used */
};

/* Prints the chosen algorithm and the row of the table, the bytes that each rank moves
 * and adds, then the steps of rank 0, where ticks that are alike are printed once.
 * Returns HVD_ERR_UNSUPPORTED for a barrier, which has no schedule. */
int bench_explain(const struct bench_explain_query *query, FILE *out,
                  struct hvd_error *err);

/* Prints the name of each algorithm, with a sentence about the algorithm. */
void bench_explain_list(FILE *out);

/* Reads the number of ranks on each node, such as "4,4". The caller frees the layout with
 * hvd_layout_finish. */
int bench_layout_parse(const char *text, struct hvd_layout *layout,
                       struct hvd_error *err);

/* Writes a layout in the form that bench_layout_parse reads. Returns text. */
const char *bench_layout_write(const struct hvd_layout *layout, char *text, size_t room);

#endif
