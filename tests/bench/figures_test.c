/* SPDX-License-Identifier: Apache-2.0 */
/* Spread and bandwidths. */
#include "contrib/bench/hvd_bench/figures.h"

#include <math.h>
#include <stddef.h>

#include "tests/tap.h"

static bool is(double found, double wanted)
{
    return fabs(found - wanted) < 1e-12 * (1 + fabs(wanted));
}

static void check_spread(void)
{
    double odd[] = {5, 1, 4, 2, 3}, even[] = {4, 1, 3, 2}, one[] = {7};
    struct bench_spread spread = bench_spread_of(odd, 5);

    tap_ok(is(spread.least, 1) && is(spread.quarter, 2) && is(spread.median, 3) &&
               is(spread.three_quarters, 4) && is(spread.most, 5),
           "quartiles of five values are values");
    spread = bench_spread_of(even, 4);
    tap_ok(is(spread.quarter, 1.75) && is(spread.median, 2.5) &&
               is(spread.three_quarters, 3.25),
           "quartiles of four values lie between them");
    spread = bench_spread_of(one, 1);
    tap_ok(is(spread.least, 7) && is(spread.median, 7) && is(spread.most, 7),
           "the quartiles of one value are this value");
}

int main(void)
{
    check_spread();
    tap_ok(is(bench_algorithm_bandwidth(4000000000, 2), 2), "algbw is bytes over time");
    tap_ok(is(bench_bus_factor(BENCH_ALLREDUCE, 2), 1) &&
               is(bench_bus_factor(BENCH_ALLREDUCE, 8), 1.75),
           "busbw of allreduce is 2(n-1)/n of algbw");
    tap_ok(is(bench_bus_factor(BENCH_ALLGATHER, 4), 0.75) &&
               is(bench_bus_factor(BENCH_REDUCESCATTER, 4), 0.75) &&
               is(bench_bus_factor(BENCH_ALLTOALL, 4), 0.75),
           "busbw of allgather, reducescatter, alltoall is (n-1)/n of algbw");
    tap_ok(is(bench_bus_factor(BENCH_GATHER, 4), 0.75) &&
               is(bench_bus_factor(BENCH_SCATTER, 4), 0.75) &&
               is(bench_bus_factor(BENCH_SENDRECV, 4), 1) &&
               is(bench_bus_factor(BENCH_PINGPONG, 4), 2),
           "busbw of gather and scatter is (n-1)/n of algbw");
    tap_ok(is(bench_bus_factor(BENCH_BROADCAST, 8), 1) &&
               is(bench_bus_factor(BENCH_REDUCE, 8), 1),
           "busbw of broadcast and reduce is algbw");
    return tap_done();
}
