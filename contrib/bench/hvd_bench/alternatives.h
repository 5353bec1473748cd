/* SPDX-License-Identifier: Apache-2.0 */
/* What a table of algorithms can say for a collective on a shape of job. Pure. */
#ifndef HVD_BENCH_ALTERNATIVES_H
#define HVD_BENCH_ALTERNATIVES_H

#include "collectives/schedule/algorithm_table.h"
#include "contrib/bench/hvd_bench/crossing.h"

struct bench_alternative {
    char name[40]; /* as in a table: "one_shot chunk=64K" */
    struct hvd_algorithm_row row;
};

struct bench_alternatives {
    int count;
    struct bench_alternative items[BENCH_MOST_ALTERNATIVES];
};

/* All that there are; the rows of the built-in table are among them. */
void bench_alternatives_list(enum hvd_collective collective, struct hvd_job_shape shape,
                             struct bench_alternatives *out);

/* Whether one can be anything else than its neighbours at a size. */
bool bench_alternative_fits(const struct bench_alternative *alternative, int64_t bytes);

/* The one that the built-in table takes. */
int bench_alternative_usual(const struct bench_alternatives *alternatives,
                            enum hvd_collective collective, struct hvd_job_shape shape,
                            int64_t bytes);

/* The rows of a table for what was chosen at each size; [count] of both. Where both neighbours are
 * those of the built-in table, so is the size from which on the larger holds. */
void bench_alternatives_rows(const struct bench_alternatives *alternatives,
                             enum hvd_collective collective, struct hvd_job_shape shape,
                             const struct bench_sweep_size *sizes, const int *chosen,
                             int count, struct hvd_algorithm_rows *list);

#endif
