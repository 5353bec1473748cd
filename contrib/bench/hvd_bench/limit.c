/* SPDX-License-Identifier: Apache-2.0 */
/* Sums through shared memory.
 *
 *   memory   [ of rank 0 | of rank 1 | ... ], each written by its rank only:
 *            [ two sets of lines | chunks in, added | slots in | slots of results ]
 *
 * Chunk c uses slot c % SLOTS. Each rank publishes how many chunks it has copied in and
 * how many it has added; the others wait for these numbers. A slot is free by the time it
 * is needed: a rank that starts chunk c has seen all others copy chunk c - 2 in, so they
 * have finished chunk c - 4. With an exchange they fetch one chunk later, which is
 * early enough: a rank that adds chunk c has seen all others copy chunk c in, so they
 * have fetched chunk c - 4. */
#include "contrib/bench/hvd_bench/limit.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "collectives/reduce/reduce.h"
#include "collectives/reduce/stream.h"

enum {
    LINE_FLOATS = 14,
    LINES_BYTES = 4096, /* the most data that `lines` takes */
    LINES = (LINES_BYTES + LINE_FLOATS * 4 - 1) / (LINE_FLOATS * 4),
    SLOTS = 4,
    SLOT_BYTES = 256 * 1024,
    EXCHANGE_SLOT_BYTES = 1 << 20,
    COUNTERS = 12 * 1024, /* offset of the counters, 128 bytes each */
    HEAD = 16 * 1024,
    FEW_POLLS = 20, /* polls if ranks share cores */
    MANY_POLLS = 20000,
    MOST_RANKS = 256,
    BLOCK = 1024 /* floats that stay in the first-level cache */
};

/* A cache line. */
struct line {
    float data[LINE_FLOATS];
    _Atomic uint64_t number;
};

_Static_assert(2 * sizeof(struct line) * LINES <= COUNTERS, "two sets of lines fit");

/* Returns the bytes of the memory that one rank writes. */
static size_t rank_bytes(size_t slot_bytes)
{
    return HEAD + 2 * (size_t)SLOTS * slot_bytes;
}

size_t bench_limit_memory_bytes(int ranks, bool exchanges)
{
    return (size_t)ranks * rank_bytes(exchanges ? EXCHANGE_SLOT_BYTES : SLOT_BYTES);
}

void bench_limit_init(struct bench_limit *limit, char *memory, int rank, int ranks,
                      const struct bench_limit_exchange *exchange)
{
    /* both nodes may share this machine's cores */
    int processes = exchange != NULL ? 2 * ranks : ranks;

    *limit = (struct bench_limit){.memory = memory,
                                  .rank = rank,
                                  .ranks = ranks,
                                  .exchange = exchange,
                                  .slot_bytes = exchange != NULL ? EXCHANGE_SLOT_BYTES
                                                                 : SLOT_BYTES};
    limit->polls = processes > sysconf(_SC_NPROCESSORS_ONLN) ? FEW_POLLS : MANY_POLLS;
}

static char *part_of(const struct bench_limit *limit, int rank)
{
    return limit->memory + (size_t)rank * rank_bytes(limit->slot_bytes);
}

static _Atomic uint64_t *chunks_in(const struct bench_limit *limit, int rank)
{
    return (_Atomic uint64_t *)(part_of(limit, rank) + COUNTERS);
}

static _Atomic uint64_t *chunks_added(const struct bench_limit *limit, int rank)
{
    return (_Atomic uint64_t *)(part_of(limit, rank) + COUNTERS + 128);
}

static float *slot_in(const struct bench_limit *limit, int rank, uint64_t chunk)
{
    return (float *)(part_of(limit, rank) + HEAD + chunk % SLOTS * limit->slot_bytes);
}

static float *slot_out(const struct bench_limit *limit, int rank, uint64_t chunk)
{
    return (float *)(part_of(limit, rank) + HEAD +
                     (SLOTS + chunk % SLOTS) * limit->slot_bytes);
}

static void wait_until(const struct bench_limit *limit, _Atomic uint64_t *number,
                       uint64_t least)
{
    for (int polls = 0; atomic_load_explicit(number, memory_order_acquire) < least;
         polls++) {
        if (polls >= limit->polls) {
            if (limit->exchange != NULL) {
                limit->exchange->progress(limit->exchange->self);
            }
            sched_yield();
            polls = 0;
        }
    }
}

/* --- lines --- */

static struct line *lines_of(const struct bench_limit *limit, int rank)
{
    return (struct line *)part_of(limit, rank) + limit->lines % 2 * LINES;
}

static void put_lines(const struct bench_limit *limit, const float *in, int64_t count)
{
    struct line *line = lines_of(limit, limit->rank);

    for (; count >= LINE_FLOATS; count -= LINE_FLOATS, in += LINE_FLOATS, line++) {
        memcpy(line->data, in, sizeof(line->data));
        atomic_store_explicit(&line->number, limit->lines, memory_order_release);
    }
    if (count > 0) {
        memcpy(line->data, in, (size_t)count * sizeof(*in));
        atomic_store_explicit(&line->number, limit->lines, memory_order_release);
    }
}

/* Computes out = a + b, `count` floats, at most those of a line. */
static void add_line(float *out, const float *a, const float *b, int64_t count)
{
    if (count == LINE_FLOATS) {
        float sum[LINE_FLOATS];

        for (int i = 0; i < LINE_FLOATS; i++) {
            sum[i] = a[i] + b[i];
        }
        memcpy(out, sum, sizeof(sum));
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        out[i] = a[i] + b[i];
    }
}

/* Adds up one line of each rank. This rank's numbers are those of its input. */
static void sum_line(const struct bench_limit *limit, int64_t index, const float *in,
                     float *out, int64_t count)
{
    float own[LINE_FLOATS];
    const float *sum = own;

    memcpy(own, in, (size_t)count * sizeof(*in));
    for (int rank = 0; rank < limit->ranks; rank++) {
        struct line *line = lines_of(limit, rank) + index;
        const float *data = rank == limit->rank ? own : line->data;

        if (rank != limit->rank) {
            wait_until(limit, &line->number, limit->lines);
        }
        if (rank == 0) {
            sum = data;
        } else {
            add_line(out, sum, data, count);
            sum = out;
        }
    }
    if (limit->ranks == 1) {
        memmove(out, in, (size_t)count * sizeof(*in));
    }
}

/* Sums at least one number through lines. Each rank has two sets of lines and uses them
 * in turn. Before it writes a set again, all others have started the sum with its other
 * set, so they have read this one. */
static void sum_by_lines(struct bench_limit *limit, const float *in, float *out,
                         int64_t count)
{
    limit->lines++;
    put_lines(limit, in, count);
    for (int64_t index = 0; count > 0; index++) {
        int64_t most = count < LINE_FLOATS ? count : LINE_FLOATS;

        sum_line(limit, index, in, out, most);
        in += most;
        out += most;
        count -= most;
    }
}

/* --- chunks --- */

/* A sum in progress. */
struct sum {
    struct bench_limit *limit;
    const struct bench_limit_plan *plan;
    const float *in;
    float *out;
    int64_t count;
    int64_t chunk; /* elements of a chunk */
    uint64_t first; /* number of the first chunk */
};

static int64_t length_of(const struct sum *sum, int64_t chunk)
{
    int64_t rest = sum->count - chunk * sum->chunk;

    return rest < sum->chunk ? rest : sum->chunk;
}

/* Returns where the part of a rank begins, rounded down to a cache line. */
static int64_t part_begin(int64_t length, int rank, int ranks)
{
    return rank == ranks ? length : length * rank / ranks / 16 * 16;
}

/* Copies elements [begin, end) of a chunk in. */
static void copy_range(const struct sum *sum, int64_t chunk, int64_t begin, int64_t end)
{
    const struct bench_limit *limit = sum->limit;

    memcpy(slot_in(limit, limit->rank, sum->first + (uint64_t)chunk) + begin,
           sum->in + chunk * sum->chunk + begin, (size_t)(end - begin) * sizeof(float));
}

/* Copies in what other ranks need: in `parts`, all but this rank's own part. */
static void copy_in(const struct sum *sum, int64_t chunk)
{
    const struct bench_limit *limit = sum->limit;
    int64_t length = length_of(sum, chunk);

    if (sum->plan->way == BENCH_LIMIT_PARTS) {
        copy_range(sum, chunk, 0, part_begin(length, limit->rank, limit->ranks));
        copy_range(sum, chunk, part_begin(length, limit->rank + 1, limit->ranks), length);
    } else {
        copy_range(sum, chunk, 0, length);
    }
    atomic_store_explicit(chunks_in(limit, limit->rank), sum->first + (uint64_t)chunk + 1,
                          memory_order_release);
}

static void wait_all(const struct bench_limit *limit,
                     _Atomic uint64_t *(*counter)(const struct bench_limit *, int),
                     uint64_t least)
{
    for (int rank = 0; rank < limit->ranks; rank++) {
        wait_until(limit, counter(limit, rank), least);
    }
}

static void copy_out(const struct sum *sum, float *out, const float *in, int64_t count)
{
    size_t bytes = (size_t)count * sizeof(*out);

    if (sum->plan->streams) {
        hvd_copy_stream(out, in, bytes);
    } else {
        memcpy(out, in, bytes);
    }
}

/* Sets the sources of a chunk's sum, from element `begin` on: the slots of the other
 * ranks, and this rank's input. */
static void set_sources(const struct sum *sum, int64_t chunk, int64_t begin,
                        const void **sources)
{
    const struct bench_limit *limit = sum->limit;

    for (int rank = 0; rank < limit->ranks; rank++) {
        sources[rank] = rank == limit->rank
                            ? sum->in + chunk * sum->chunk + begin
                            : slot_in(limit, rank, sum->first + (uint64_t)chunk) + begin;
    }
}

/* Adds up elements [begin, end) of a chunk into the output. copy: also into this rank's
 * slot of results. */
static void add_range(const struct sum *sum, int64_t chunk, int64_t begin, int64_t end,
                      bool copy)
{
    const struct bench_limit *limit = sum->limit;
    const struct hvd_reduction reduction = hvd_reduction_of(HVD_FLOAT32, HVD_SUM);
    uint64_t number = sum->first + (uint64_t)chunk;
    float *out = sum->out + chunk * sum->chunk;
    const void *in[MOST_RANKS];
    int64_t step = copy ? BLOCK : end - begin;

    for (; begin < end; begin += step) {
        int64_t count = end - begin < step ? end - begin : step;
        float *slot = slot_out(limit, limit->rank, number) + begin;

        set_sources(sum, chunk, begin, in);
        if (copy) {
            hvd_reduce(&reduction, in, limit->ranks, (size_t)count, slot);
            copy_out(sum, out + begin, slot, count);
        } else if (sum->plan->streams) {
            hvd_reduce_stream(&reduction, in, limit->ranks, (size_t)count, out + begin);
        } else {
            hvd_reduce(&reduction, in, limit->ranks, (size_t)count, out + begin);
        }
    }
}

static void publish_part(const struct sum *sum, int64_t chunk)
{
    atomic_store_explicit(chunks_added(sum->limit, sum->limit->rank),
                          sum->first + (uint64_t)chunk + 1, memory_order_release);
}

/* Adds elements [begin, end) of a chunk, and begins to exchange the sums. They are in the
 * part of this rank's slot that other ranks do not need. */
static void exchange_range(const struct sum *sum, int64_t chunk, int64_t begin,
                           int64_t end)
{
    const struct bench_limit *limit = sum->limit;
    const struct hvd_reduction reduction = hvd_reduction_of(HVD_FLOAT32, HVD_SUM);
    uint64_t number = sum->first + (uint64_t)chunk;
    float *part = slot_in(limit, limit->rank, number) + begin;
    const void *in[MOST_RANKS];

    set_sources(sum, chunk, begin, in);
    hvd_reduce(&reduction, in, limit->ranks, (size_t)(end - begin), part);
    limit->exchange->begin(limit->exchange->self, part,
                           slot_out(limit, limit->rank, number) + begin,
                           sum->out + chunk * sum->chunk + begin, end - begin);
}

static void add_part(const struct sum *sum, int64_t chunk)
{
    const struct bench_limit *limit = sum->limit;
    int64_t length = length_of(sum, chunk);
    int64_t begin = part_begin(length, limit->rank, limit->ranks);
    int64_t end = part_begin(length, limit->rank + 1, limit->ranks);

    wait_all(limit, chunks_in, sum->first + (uint64_t)chunk + 1);
    if (limit->exchange != NULL) {
        exchange_range(sum, chunk, begin, end);
    } else {
        add_range(sum, chunk, begin, end, true);
        publish_part(sum, chunk);
    }
}

static void fetch_parts(const struct sum *sum, int64_t chunk)
{
    const struct bench_limit *limit = sum->limit;
    uint64_t number = sum->first + (uint64_t)chunk;
    int64_t length = length_of(sum, chunk);

    for (int step = 1; step < limit->ranks; step++) {
        int rank = (limit->rank + step) % limit->ranks;
        int64_t begin = part_begin(length, rank, limit->ranks);

        wait_until(limit, chunks_added(limit, rank), number + 1);
        copy_out(sum, sum->out + chunk * sum->chunk + begin,
                 slot_out(limit, rank, number) + begin,
                 part_begin(length, rank + 1, limit->ranks) - begin);
    }
}

static void sum_full(const struct sum *sum, int64_t chunks)
{
    for (int64_t chunk = 0; chunk <= chunks; chunk++) {
        if (chunk < chunks) {
            copy_in(sum, chunk);
        }
        if (chunk >= 1) {
            wait_all(sum->limit, chunks_in, sum->first + (uint64_t)chunk);
            add_range(sum, chunk - 1, 0, length_of(sum, chunk - 1), false);
        }
    }
}

static void sum_parts(const struct sum *sum, int64_t chunks)
{
    const struct bench_limit_exchange *exchange = sum->limit->exchange;
    int64_t lag = exchange != NULL ? 3 : 2;

    for (int64_t chunk = 0; chunk < chunks + lag; chunk++) {
        if (chunk < chunks) {
            copy_in(sum, chunk);
        }
        if (chunk >= 1 && chunk <= chunks) {
            add_part(sum, chunk - 1);
        }
        if (exchange != NULL && chunk >= 2 && chunk < chunks + 2) {
            exchange->finish(exchange->self);
            publish_part(sum, chunk - 2);
        }
        if (chunk >= lag) {
            fetch_parts(sum, chunk - lag);
        }
    }
}

void bench_limit_sum(struct bench_limit *limit, const struct bench_limit_plan *plan,
                     const float *in, float *out, int64_t count)
{
    struct sum sum = {.limit = limit,
                      .plan = plan,
                      .in = in,
                      .out = out,
                      .count = count,
                      .chunk = (int64_t)(plan->chunk / sizeof(float)),
                      .first = limit->chunks};
    int64_t chunks;

    if (plan->way == BENCH_LIMIT_LINES) {
        sum_by_lines(limit, in, out, count);
        return;
    }
    chunks = (count + sum.chunk - 1) / sum.chunk;
    limit->chunks += (uint64_t)chunks;
    if (plan->way == BENCH_LIMIT_FULL) {
        sum_full(&sum, chunks);
    } else {
        sum_parts(&sum, chunks);
    }
}

/* --- plans --- */

/* Fills the plans for a sum with an exchange. */
static int exchange_plans(size_t bytes, struct bench_limit_plan *plans)
{
    static const size_t chunks[] = {64 << 10, 128 << 10, 256 << 10, 512 << 10,
                                    EXCHANGE_SLOT_BYTES};
    int count = 0;

    for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
        plans[count++] = (struct bench_limit_plan){BENCH_LIMIT_PARTS, chunks[i], false};
        if (bytes <= chunks[i]) {
            break;
        }
    }
    return count;
}

int bench_limit_plans(const struct bench_limit *limit, size_t bytes,
                      struct bench_limit_plan plans[BENCH_LIMIT_PLANS])
{
    static const size_t chunks[] = {64 << 10, 128 << 10, 256 << 10};
    const size_t few_parts = 8 << 10, leaves_caches = 1 << 20;
    int ways_out = bytes >= leaves_caches ? 2 : 1, count = 0;

    if (limit->exchange != NULL) {
        return exchange_plans(bytes, plans);
    }
    if (bytes <= LINES_BYTES) {
        plans[count++] = (struct bench_limit_plan){.way = BENCH_LIMIT_LINES};
    }
    for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
        for (int streams = 0; streams < ways_out; streams++) {
            plans[count++] =
                (struct bench_limit_plan){BENCH_LIMIT_FULL, chunks[i], streams != 0};
            if (bytes >= few_parts) {
                plans[count++] =
                    (struct bench_limit_plan){BENCH_LIMIT_PARTS, chunks[i], streams != 0};
            }
        }
        if (bytes <= chunks[i]) {
            break; /* a larger chunk would give the same plan */
        }
    }
    return count;
}
