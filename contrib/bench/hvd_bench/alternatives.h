/* SPDX-License-Identifier: Apache-2.0 */
/* The algorithms that a table can name for a collective on a shape of job, and the choice
 * between them by their times. Pure. */
#ifndef HVD_BENCH_ALTERNATIVES_H
#define HVD_BENCH_ALTERNATIVES_H

#include "collectives/schedule/algorithm_table.h"
#include "contrib/bench/hvd_bench/figures.h"

enum {
    BENCH_MOST_ALTERNATIVES = 12
};

struct bench_alternative {
    char name[40]; /* as in a table: "one_shot chunk=64K" */
    struct hvd_algorithm_row row;
};

struct bench_alternatives {
    int count;
    struct bench_alternative items[BENCH_MOST_ALTERNATIVES];
};

/* Lists all alternatives; the rows of the built-in table are among them. */
void bench_alternatives_list(enum hvd_collective collective, struct hvd_job_shape shape,
                             struct bench_alternatives *out);

/* Whether to time an alternative at this size: LL carries only one line, and a chunk or
 * window is of no use for small data. */
bool bench_alternative_fits(const struct bench_alternative *alternative, int64_t bytes);

/* Returns the index of the alternative that the built-in table chooses. */
int bench_alternative_usual(const struct bench_alternatives *alternatives,
                            enum hvd_collective collective, struct hvd_job_shape shape,
                            int64_t bytes);

/* The times of one alternative at one size. */
struct bench_cell {
    int turns; /* turns in which it was measured; 0: not measured at this size */
    double seconds; /* seconds of a call: the smallest of the medians of all turns */
    /* Ratios of the time to that of the usual alternative in the same round. middle: the
     * geometric mean of the medians of all turns. high: the largest third quartile of all
     * turns. */
    double middle, high;
};

struct bench_sweep_size {
    int64_t bytes;
    int usual; /* index of the alternative that the built-in table chooses */
    struct bench_cell cells[BENCH_MOST_ALTERNATIVES];
};

/* Adds the result of one turn. quotients: the ratios of its rounds. */
void bench_cell_add(struct bench_cell *cell, double seconds,
                    const struct bench_spread *quotients);

/* Returns the fastest alternative that was faster than the usual one in every turn, and
 * by at least 5 %; the usual one if there is none. */
int bench_alternative_choose(const struct bench_sweep_size *size, int alternatives);

/* Makes the rows of a table from the alternatives that were chosen at `count` ascending
 * sizes. A choice applies from its size up to the next one. Between two sizes that both
 * choose the usual alternative, the rows of the built-in table are kept. */
void bench_alternatives_rows(const struct bench_alternatives *alternatives,
                             enum hvd_collective collective, struct hvd_job_shape shape,
                             const struct bench_sweep_size *sizes, const int *chosen,
                             int count, struct hvd_algorithm_rows *list);

#endif
