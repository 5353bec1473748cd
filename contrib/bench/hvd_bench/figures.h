/* SPDX-License-Identifier: Apache-2.0 */
/* From times to figures: spread, bandwidths as nccl-tests defines them. Pure. */
#ifndef HVD_BENCH_FIGURES_H
#define HVD_BENCH_FIGURES_H

#include <stdint.h>

enum bench_collective {
    BENCH_ALLREDUCE,
    BENCH_ALLGATHER,
    BENCH_BROADCAST,
    BENCH_ALLTOALL,
    BENCH_REDUCESCATTER,
    BENCH_BARRIER,
    BENCH_COLLECTIVES
};

/* Of many times of the same thing; quarters by linear interpolation between neighbours. */
struct bench_spread {
    double least, quarter, median, three_quarters, most;
};

/* Of count > 0 values, which it sorts. */
struct bench_spread bench_spread_of(double *values, int count);

/* "allreduce"; -1 for a word that is none. */
const char *bench_collective_name(enum bench_collective collective);
int bench_collective_find(const char *name);

/* What nccl-tests calls algbw: bytes over time, GB/s (10^9). bytes is its size: of the whole
 * buffer of a rank, the larger one where input and output differ. 0 for a barrier. */
double bench_algorithm_bandwidth(int64_t bytes, double seconds);

/* busbw over algbw: the share of the bytes that every rank has to send at least, 2(n-1)/n of an
 * allreduce, (n-1)/n of allgather, alltoall and reducescatter, 1 of a broadcast; 0 of a
 * barrier. ranks > 0. */
double bench_bus_factor(enum bench_collective collective, int ranks);

#endif
