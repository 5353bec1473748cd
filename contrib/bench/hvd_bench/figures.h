/* SPDX-License-Identifier: Apache-2.0 */
/* Turns times into figures: spread, and bandwidths as nccl-tests defines them. Pure. */
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
    BENCH_REDUCE, /* from here to BENCH_SCATTER: with rank 0 as the root */
    BENCH_GATHER,
    BENCH_SCATTER,
    /* each rank sends to the next one and receives from the one before, at once */
    BENCH_SENDRECV,
    BENCH_PINGPONG, /* between ranks 0 and 1, 2 and 3, ...: there and back */
    BENCH_BARRIER,
    BENCH_COLLECTIVES
};

/* The distribution of many times of the same work; quartiles are interpolated
 * linearly. */
struct bench_spread {
    double least, quarter, median, three_quarters, most;
};

/* Returns the spread of count > 0 values, which it sorts. */
struct bench_spread bench_spread_of(double *values, int count);

/* Returns the name of a collective, such as "allreduce". */
const char *bench_collective_name(enum bench_collective collective);

/* Whether the collective reduces, so that it has an operation. */
static inline bool bench_collective_reduces(enum bench_collective collective)
{
    return collective == BENCH_ALLREDUCE || collective == BENCH_REDUCESCATTER ||
           collective == BENCH_REDUCE;
}

/* Whether only rank 0 gets a result. */
static inline bool bench_collective_ends_at_root(enum bench_collective collective)
{
    return collective == BENCH_REDUCE || collective == BENCH_GATHER;
}

/* Whether the collective is sendrecv or pingpong: messages between pairs of ranks,
 * without a schedule. */
static inline bool bench_collective_is_of_pairs(enum bench_collective collective)
{
    return collective == BENCH_SENDRECV || collective == BENCH_PINGPONG;
}

/* Returns algbw of nccl-tests in GB/s (10^9): bytes divided by time. bytes: the size of a
 * rank's buffer, or of the larger one if input and output differ. 0 for a barrier. */
double bench_algorithm_bandwidth(int64_t bytes, double seconds);

/* Returns busbw divided by algbw: the part of the bytes that every rank has to send at
 * least. 2(n-1)/n for allreduce; (n-1)/n for allgather, alltoall, reducescatter, gather
 * and scatter; 1 for broadcast, reduce and sendrecv; 2 for pingpong; 0 for a barrier.
 * ranks > 0. */
double bench_bus_factor(enum bench_collective collective, int ranks);

#endif
