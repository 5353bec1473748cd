/* SPDX-License-Identifier: Apache-2.0 */
/* The cheapest way through the alternatives from the smallest size to the largest. */
#include "contrib/bench/hvd_bench/crossing.h"

#include <math.h>

enum {
    MOST_SIZES = 256
};

/* Gains are logarithms of quotients. A change to something unusual has to gain 5 % at one size, or
 * together at several; what is no faster is not taken; 2 % slower is slower. */
static const double change_cost = 0.05;
static const double unusual_cost = 0.002;
static const double slower = 1.02;

void bench_cell_add(struct bench_cell *cell, double seconds,
                    const struct bench_spread *quotients)
{
    double turns = cell->turns++;

    if (turns == 0) {
        *cell = (struct bench_cell){1, seconds, quotients->quarter, quotients->median,
                                    quotients->three_quarters};
        return;
    }
    cell->seconds = fmin(cell->seconds, seconds);
    cell->low = fmin(cell->low, quotients->quarter);
    cell->high = fmax(cell->high, quotients->three_quarters);
    cell->middle =
        exp((turns * log(cell->middle) + log(quotients->median)) / (turns + 1));
}

/* Of an alternative at a size, without what changing costs. */
static double cost_of(const struct bench_sweep_size *size, int alternative)
{
    const struct bench_cell *cell = &size->cells[alternative];

    if (alternative == size->usual) {
        return 0;
    }
    if (cell->turns == 0 || cell->low > 1 || cell->middle > slower) {
        return INFINITY;
    }
    return unusual_cost + (cell->high < 1 ? log(cell->middle) : 0);
}

/* The usual one costs nothing to come back to. */
static double cost_to(const struct bench_sweep_size *size, int from, int to)
{
    return from == to || to == size->usual ? 0 : change_cost;
}

void bench_crossing_choose(const struct bench_sweep_size *sizes, int count,
                           int alternatives, int *chosen)
{
    double costs[BENCH_MOST_ALTERNATIVES] = {0}, next[BENCH_MOST_ALTERNATIVES];
    signed char before[MOST_SIZES][BENCH_MOST_ALTERNATIVES];
    int best = 0;

    for (int to = 0; to < alternatives && count > 0; to++) {
        costs[to] = cost_of(&sizes[0], to) + cost_to(&sizes[0], -1, to);
    }
    for (int i = 1; i < count; i++) {
        for (int to = 0; to < alternatives; to++) {
            best = to;
            for (int from = 0; from < alternatives; from++) {
                if (costs[from] + cost_to(&sizes[i], from, to) <
                    costs[best] + cost_to(&sizes[i], best, to)) {
                    best = from;
                }
            }
            before[i][to] = (signed char)best;
            next[to] =
                costs[best] + cost_to(&sizes[i], best, to) + cost_of(&sizes[i], to);
        }
        for (int to = 0; to < alternatives; to++) {
            costs[to] = next[to];
        }
    }
    best = count > 0 ? sizes[count - 1].usual : 0;
    for (int to = 0; to < alternatives; to++) {
        best = costs[to] < costs[best] ? to : best;
    }
    for (int i = count - 1; i >= 0; i--) {
        chosen[i] = best;
        best = i > 0 ? before[i][best] : best;
    }
}

/* To one of 8 steps between two powers of 2. */
static int64_t round_size(double bytes)
{
    int exponent;
    double fraction = frexp(bytes, &exponent); /* 0.5 to 1 */

    return exponent > 4 ? (int64_t)ldexp(round(fraction * 16), exponent - 4)
                        : (int64_t)bytes;
}

int64_t bench_crossing_between(const struct bench_sweep_size *a,
                               const struct bench_sweep_size *b, int from, int to)
{
    double at_a = 0, at_b = 0, share = 0.5;
    int64_t bytes;

    if (a->cells[from].turns > 0 && a->cells[to].turns > 0) {
        at_a = log(a->cells[to].middle / a->cells[from].middle);
    }
    if (b->cells[from].turns > 0 && b->cells[to].turns > 0) {
        at_b = log(b->cells[to].middle / b->cells[from].middle);
    }
    if (at_a > 0 && at_b < 0) {
        share = at_a / (at_a - at_b);
    } else if (at_a < 0 && at_b < 0) {
        share = 0; /* it was not worth a change before */
    } else if (at_a > 0 && at_b > 0) {
        share = 1;
    }
    bytes =
        round_size((double)a->bytes * pow((double)b->bytes / (double)a->bytes, share));
    bytes = bytes > b->bytes ? b->bytes : bytes;
    return bytes > a->bytes ? bytes : a->bytes + 1;
}
