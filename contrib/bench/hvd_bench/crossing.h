/* SPDX-License-Identifier: Apache-2.0 */
/* From the times of several alternatives at several sizes to the one that is to be taken at each.
 * Pure.
 *
 * An alternative is taken instead of the usual one only where it was faster in every turn, and by
 * more than changing over is worth; one that was slower never is. */
#ifndef HVD_BENCH_CROSSING_H
#define HVD_BENCH_CROSSING_H

#include <stdbool.h>
#include <stdint.h>

#include "contrib/bench/hvd_bench/figures.h"

enum {
    BENCH_MOST_ALTERNATIVES = 12,
};

/* An alternative at a size. */
struct bench_cell {
    int turns; /* in which it was measured; 0: it is nothing for this size */
    double seconds; /* of a call, the least median of the turns */
    /* Its time over that of the usual one in the same round: the least and the largest quartile of
     * all turns, and the geometric mean of their medians. */
    double low, middle, high;
};

struct bench_sweep_size {
    int64_t bytes;
    int usual; /* the alternative that is taken without a table */
    struct bench_cell cells[BENCH_MOST_ALTERNATIVES];
};

/* One more turn; quotients: of the rounds. */
void bench_cell_add(struct bench_cell *cell, double seconds,
                    const struct bench_spread *quotients);

/* chosen: [count], an alternative for each size, ascending. */
void bench_crossing_choose(const struct bench_sweep_size *sizes, int count,
                           int alternatives, int *chosen);

/* Where, above size a and up to size b, to go from one alternative to another: where their times
 * would be the same if their quotient grew evenly over the logarithm of the size, rounded to one
 * of 8 steps between two powers of 2. */
int64_t bench_crossing_between(const struct bench_sweep_size *a,
                               const struct bench_sweep_size *b, int from, int to);

#endif
