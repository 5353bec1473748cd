/* SPDX-License-Identifier: Apache-2.0 */
/* The practical limit: a sum of float32 among the ranks of one node through shared
 * memory, with private input and output, by hvd's inner loops, and nothing else: no
 * names, no types, no errors, no other work.
 *
 * Three ways, all of which add in the order of the ranks:
 *   line    up to 56 bytes: data and sequence number in one cache line, of each rank
 *   full    all copy their input in, a chunk at a time; everybody adds everything: each chunk
 *           waits once
 *   parts   all copy in; each adds its part of the chunk and leaves the result for the others,
 *           who fetch it: less to add, but each chunk waits twice. Three chunks overlap
 * Outputs may be written past the caches. Which is fastest depends on the machine and, of a virtual
 * one, on the moment: the caller tries the plans. */
#ifndef HVD_BENCH_LIMIT_H
#define HVD_BENCH_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BENCH_LIMIT_PLANS = 16
};

enum bench_limit_way {
    BENCH_LIMIT_LINE,
    BENCH_LIMIT_FULL,
    BENCH_LIMIT_PARTS
};

struct bench_limit_plan {
    enum bench_limit_way way;
    size_t chunk; /* bytes */
    bool streams; /* outputs go past the caches */
};

struct bench_limit {
    char *memory; /* zeroed at first, shared by all ranks */
    int rank;
    int ranks;
    int polls; /* before the core is given to somebody else */
    uint64_t lines; /* sums by line so far */
    uint64_t chunks; /* chunks so far, by the other ways */
};

size_t bench_limit_memory_bytes(int ranks);

/* The ranks share memory; each calls this before any runs. */
void bench_limit_init(struct bench_limit *limit, char *memory, int rank, int ranks);

/* The plans that may be fastest for a sum of so many bytes. Returns their number, above
 * 0. */
int bench_limit_plans(size_t bytes, struct bench_limit_plan plans[BENCH_LIMIT_PLANS]);

/* out[i] = sum over ranks of in[i]; in and out may be the same. All ranks call it with
 * the same plan and count. */
void bench_limit_sum(struct bench_limit *limit, const struct bench_limit_plan *plan,
                     const float *in, float *out, int64_t count);

#endif
