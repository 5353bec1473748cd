/* SPDX-License-Identifier: Apache-2.0 */
/* A sum of float32 among the ranks of one node, written by hand: through shared memory,
 * with private input and output and hvd's vector loops. It does without names, types,
 * errors and all else that a library needs, so it shows what these cost.
 *
 * There are three ways. All of them add in the order of the ranks, and a rank reads its
 * own numbers from its input:
 *   lines   up to 4 KiB: 56 bytes of data and a sequence number in each cache line, so
 *           that a line is announced by itself
 *   full    all ranks copy their input in, chunk by chunk, and each adds up everything;
 *           ranks wait for each other once per chunk
 *   parts   all ranks copy in, each adds up its part of the chunk and leaves the result
 *           for the others to fetch: less to add, but ranks wait twice per chunk. Three
 *           chunks overlap
 * Outputs may be written past the caches. Which way is fastest depends on the machine,
 * and on a virtual machine also on the moment: the caller tries the plans.
 *
 * Between two nodes there is only `parts`: each rank exchanges the sum of its part with
 * its counterpart on the other node before others fetch it. */
#ifndef HVD_BENCH_LIMIT_H
#define HVD_BENCH_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BENCH_LIMIT_PLANS = 16
};

enum bench_limit_way {
    BENCH_LIMIT_LINES,
    BENCH_LIMIT_FULL,
    BENCH_LIMIT_PARTS
};

struct bench_limit_plan {
    enum bench_limit_way way;
    size_t chunk; /* bytes of a chunk */
    bool streams; /* outputs go past the caches */
};

/* Adds the counterpart's part, of equal length, to this rank's. After a failure, begin,
 * finish and flush return at once with wrong sums, so that the other ranks of the node
 * need not wait, and the counterpart's exchange fails, too. The owner of the exchange
 * reports the failure. */
struct bench_limit_exchange {
    void *self;
    /* Begins to send `count` floats and to add the counterpart's. The sum goes to `out`
     * and, if it is not NULL, to `copy`. At most two may be begun and not finished. */
    void (*begin)(void *self, const float *part, float *out, float *copy, int64_t count);
    /* Finishes the oldest one that was begun. */
    void (*finish)(void *self);
    /* Moves messages on; called while this rank waits for others of its node. */
    void (*progress)(void *self);
    /* Returns when all messages have left this rank; the counterpart calls it, too. */
    void (*flush)(void *self);
};

struct bench_limit {
    char *memory; /* zeroed at first, shared by all ranks */
    int rank;
    int ranks;
    size_t slot_bytes;
    int polls; /* polls before sched_yield() */
    uint64_t lines; /* sums by `lines` so far */
    uint64_t chunks; /* chunks so far, by `full` and `parts` */
    const struct bench_limit_exchange *exchange; /* NULL: one node */
};

/* exchanges: whether the ranks of the node have counterparts on another one. */
size_t bench_limit_memory_bytes(int ranks, bool exchanges);

/* Sets up this rank's end of the shared memory. All ranks of a node call it before any of
 * them runs. exchange: borrowed; NULL if there is one node. */
void bench_limit_init(struct bench_limit *limit, char *memory, int rank, int ranks,
                      const struct bench_limit_exchange *exchange);

/* Fills the plans that may be the fastest for a sum of this size. Returns their number,
 * at least 1. */
int bench_limit_plans(const struct bench_limit *limit, size_t bytes,
                      struct bench_limit_plan plans[BENCH_LIMIT_PLANS]);

/* Computes out[i] = sum of in[i] over all ranks; in and out may be the same. All ranks
 * call it with the same plan and count. */
void bench_limit_sum(struct bench_limit *limit, const struct bench_limit_plan *plan,
                     const float *in, float *out, int64_t count);

#endif
