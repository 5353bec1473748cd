/* SPDX-License-Identifier: Apache-2.0 */
/* From times to figures: spread, bandwidths as nccl-tests defines them. Pure. */
#ifndef HVD_BENCH_FIGURES_H
#define HVD_BENCH_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

enum bench_collective {
    BENCH_ALLREDUCE,
    BENCH_ALLGATHER,
    BENCH_BROADCAST,
    BENCH_ALLTOALL,
    BENCH_REDUCESCATTER,
    BENCH_REDUCE, /* this and the next two: by rank 0 */
    BENCH_GATHER,
    BENCH_SCATTER,
    BENCH_SENDRECV, /* to the next rank and from the one before, at once */
    BENCH_PINGPONG, /* between ranks 0 and 1, 2 and 3, ...: there and back */
    BENCH_BARRIER,
    BENCH_COLLECTIVES
};

/* The distribution of many times of the same thing; quarters by linear interpolation
 * between neighbours. */
struct bench_spread {
    double least, quarter, median, three_quarters, most;
};

/* The spread of count > 0 values, which it sorts. */
struct bench_spread bench_spread_of(double *values, int count);

/* "allreduce"; -1 for a word that is none. */
const char *bench_collective_name(enum bench_collective collective);
int bench_collective_find(const char *name);

/* It adds up, or has another operation. */
static inline bool bench_collective_reduces(enum bench_collective collective)
{
    return collective == BENCH_ALLREDUCE || collective == BENCH_REDUCESCATTER ||
           collective == BENCH_REDUCE;
}

/* Only rank 0 gets a result. */
static inline bool bench_collective_ends_at_root(enum bench_collective collective)
{
    return collective == BENCH_REDUCE || collective == BENCH_GATHER;
}

/* It has no schedule: messages from one rank to another. */
static inline bool bench_collective_is_of_pairs(enum bench_collective collective)
{
    return collective == BENCH_SENDRECV || collective == BENCH_PINGPONG;
}

/* The algbw of nccl-tests: bytes over time, GB/s (10^9). bytes is its size: of the whole
 * buffer of a rank, the larger one where input and output differ. 0 for a barrier. */
double bench_algorithm_bandwidth(int64_t bytes, double seconds);

/* busbw over algbw: the share of the bytes that every rank has to send at least, 2(n-1)/n
 * of an allreduce, (n-1)/n of allgather, alltoall, reducescatter, gather and scatter, 1
 * of a broadcast, a reduce and of sendrecv, 2 of pingpong; 0 of a barrier. ranks > 0. */
double bench_bus_factor(enum bench_collective collective, int ranks);

#endif
