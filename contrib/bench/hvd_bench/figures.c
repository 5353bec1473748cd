/* SPDX-License-Identifier: Apache-2.0 */
/* Computes spreads and bandwidths. */
#include "contrib/bench/hvd_bench/figures.h"

#include <stddef.h>
#include <stdlib.h>

static const char *const names[] = {
    [BENCH_ALLREDUCE] = "allreduce",
    [BENCH_ALLGATHER] = "allgather",
    [BENCH_BROADCAST] = "broadcast",
    [BENCH_ALLTOALL] = "alltoall",
    [BENCH_REDUCESCATTER] = "reducescatter",
    [BENCH_REDUCE] = "reduce",
    [BENCH_GATHER] = "gather",
    [BENCH_SCATTER] = "scatter",
    [BENCH_SENDRECV] = "sendrecv",
    [BENCH_PINGPONG] = "pingpong",
    [BENCH_BARRIER] = "barrier",
};

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double value_at(const double *sorted, int count, double share)
{
    double place = share * (count - 1);
    int below = (int)place;

    if (below + 1 >= count) {
        return sorted[count - 1];
    }
    return sorted[below] + (place - below) * (sorted[below + 1] - sorted[below]);
}

struct bench_spread bench_spread_of(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(values[0]), compare_doubles);
    return (struct bench_spread){.least = values[0],
                                 .quarter = value_at(values, count, 0.25),
                                 .median = value_at(values, count, 0.5),
                                 .three_quarters = value_at(values, count, 0.75),
                                 .most = values[count - 1]};
}

const char *bench_collective_name(enum bench_collective collective)
{
    return names[collective];
}

double bench_algorithm_bandwidth(int64_t bytes, double seconds)
{
    return seconds > 0 ? (double)bytes / seconds / 1e9 : 0;
}

double bench_bus_factor(enum bench_collective collective, int ranks)
{
    double others = (double)(ranks - 1) / ranks;

    switch (collective) {
    case BENCH_ALLREDUCE:
        return 2 * others;
    case BENCH_ALLGATHER:
    case BENCH_ALLTOALL:
    case BENCH_REDUCESCATTER:
    case BENCH_GATHER:
    case BENCH_SCATTER:
        return others;
    case BENCH_BROADCAST:
    case BENCH_REDUCE:
    case BENCH_SENDRECV:
        return 1;
    case BENCH_PINGPONG:
        return 2;
    default:
        return 0;
    }
}
