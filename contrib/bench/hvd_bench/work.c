/* SPDX-License-Identifier: Apache-2.0 */
/* The buffers of one line of the table: their sizes, and their values in tiles. */
#include "contrib/bench/hvd_bench/work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/bench/hvd_bench/options.h"
#include "contrib/bench/hvd_bench/values.h"
#include "gpu_binding/base/error.h"

enum {
    PAGE = 4096
};

/* Chooses counts so that the larger of input and output has about the wanted size. */
static void choose_counts(struct bench_work *work)
{
    bool is_gathered =
        work->collective == BENCH_ALLGATHER || work->collective == BENCH_GATHER;
    bool is_scattered =
        work->collective == BENCH_REDUCESCATTER || work->collective == BENCH_SCATTER;
    bool is_divided = is_gathered || is_scattered || work->collective == BENCH_ALLTOALL;
    int64_t share = work->wanted / (int64_t)work->element / (is_divided ? work->size : 1);
    int64_t all;

    share = share < 1 ? 1 : share;
    all = is_divided ? share * work->size : share;
    work->input_count = is_gathered ? share : all;
    work->output_count = is_scattered ? share : all;
    work->bytes = (int64_t)work->element * all;
}

/* Allocates a buffer and touches its pages, so that the first timed call does not pay for
 * page faults. */
static char *make_buffer(const struct bench_work *work, int64_t count)
{
    size_t bytes = ((size_t)count * work->element + PAGE - 1) / PAGE * PAGE;
    char *buffer = aligned_alloc(PAGE, bytes);

    if (buffer != NULL) {
        memset(buffer, 0, bytes);
    }
    return buffer;
}

int bench_work_init(struct bench_work *work, struct hvd_error *err)
{
    work->input = work->output = NULL;
    work->element = hvd_dtype_bytes(work->dtype);
    if (work->collective == BENCH_BARRIER) {
        work->bytes = work->input_count = work->output_count = 0;
        return 0;
    }
    choose_counts(work);
    work->input = make_buffer(work, work->input_count);
    work->output = make_buffer(work, work->output_count);
    if (work->input == NULL || work->output == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for buffers of %lld bytes",
                        (long long)work->bytes);
    }
    return 0;
}

void bench_work_finish(struct bench_work *work)
{
    free(work->input);
    free(work->output);
    work->input = work->output = NULL;
}

/* Two tiles of values, stored in the type of the work: one whole tile can be read from
 * any element of the first. */
struct pattern {
    size_t bytes; /* bytes of an element */
    char tiles[2 * BENCH_TILE * 8];
};

static void make_tiles(struct pattern *pattern, enum hvd_dtype dtype,
                       const double values[BENCH_PERIOD])
{
    pattern->bytes = hvd_dtype_bytes(dtype);
    for (int i = 0; i < 2 * BENCH_TILE; i++) {
        bench_value_store(dtype, values[bench_phase(i)],
                          pattern->tiles + (size_t)i * pattern->bytes);
    }
}

/* Returns the operation that defines the values. Collectives that only move data are
 * filled as for a sum. */
static enum hvd_op op_of(const struct bench_work *work)
{
    return bench_collective_reduces(work->collective) ? work->op : HVD_SUM;
}

static struct pattern pattern_of_rank(const struct bench_work *work, int rank)
{
    struct pattern pattern;
    double values[BENCH_PERIOD];

    for (int phase = 0; phase < BENCH_PERIOD; phase++) {
        values[phase] = bench_value(op_of(work), rank, work->size, phase);
    }
    make_tiles(&pattern, work->dtype, values);
    return pattern;
}

static struct pattern pattern_of_result(const struct bench_work *work)
{
    struct pattern pattern;
    double values[BENCH_PERIOD];

    for (int phase = 0; phase < BENCH_PERIOD; phase++) {
        values[phase] = bench_value_reduced(op_of(work), work->dtype, work->size, phase);
    }
    make_tiles(&pattern, work->dtype, values);
    return pattern;
}

static void fill_pattern(const struct pattern *pattern, char *to, int64_t count)
{
    for (int64_t i = 0; i < count; i += BENCH_TILE) {
        int64_t length = count - i < BENCH_TILE ? count - i : BENCH_TILE;

        memcpy(to + (size_t)i * pattern->bytes, pattern->tiles,
               (size_t)length * pattern->bytes);
    }
}

void bench_work_fill(struct bench_work *work)
{
    struct pattern pattern = pattern_of_rank(work, work->rank);
    size_t output_bytes = (size_t)work->output_count * work->element;

    if (work->collective == BENCH_BARRIER) {
        return;
    }
    memset(work->output, 0x3b, output_bytes); /* no result has these bytes in any type */
    fill_pattern(&pattern, work->input, work->input_count);
}

/* Whether an average is close enough: libraries scale before or after the sum, so it need
 * not be exact. */
static bool is_close(const struct bench_work *work, const char *found, const char *wanted)
{
    double a = bench_value_load(work->dtype, found);
    double b = bench_value_load(work->dtype, wanted);
    double unit = work->dtype == HVD_BFLOAT16  ? 0x1p-7
                  : work->dtype == HVD_FLOAT16 ? 0x1p-10
                                               : 0x1p-22;

    return work->op == HVD_AVERAGE && fabs(a - b) <= unit * (fabs(b) + 1);
}

/* Returns the index of the first wrong element among those whose bytes differ; count if
 * none is wrong. */
static int64_t find_wrong(const struct bench_work *work, const char *found,
                          const char *wanted, int64_t count)
{
    int64_t i = 0;

    while (i < count) {
        const char *a = found + (size_t)i * work->element;
        const char *b = wanted + (size_t)i * work->element;

        if (memcmp(a, b, work->element) != 0 && !is_close(work, a, b)) {
            break;
        }
        i++;
    }
    return i;
}

static int fail_at(const struct bench_work *work, const char *found, const char *wanted,
                   int64_t element, struct hvd_error *err)
{
    return hvd_fail(err, HVD_ERR_MISMATCH, "element %lld is %g and should be %g",
                    (long long)element, bench_value_load(work->dtype, found),
                    bench_value_load(work->dtype, wanted));
}

/* Compares a part of the output with `pattern`, beginning at element `place` of the
 * pattern. */
static int check_stretch(const struct bench_work *work, const struct pattern *pattern,
                         const char *found, int64_t count, int64_t place,
                         struct hvd_error *err)
{
    const char *wanted = pattern->tiles + (size_t)(place % BENCH_TILE) * pattern->bytes;

    for (int64_t i = 0; i < count; i += BENCH_TILE) {
        int64_t length = count - i < BENCH_TILE ? count - i : BENCH_TILE, wrong;
        const char *part = found + (size_t)i * pattern->bytes;

        if (memcmp(part, wanted, (size_t)length * pattern->bytes) == 0) {
            continue;
        }
        wrong = find_wrong(work, part, wanted, length);
        if (wrong < length) {
            return fail_at(work, part + (size_t)wrong * pattern->bytes,
                           wanted + (size_t)wrong * pattern->bytes, i + wrong, err);
        }
    }
    return 0;
}

static int check_reduced(const struct bench_work *work, const char *output,
                         struct hvd_error *err)
{
    struct pattern pattern = pattern_of_result(work);
    bool is_scattered = work->collective == BENCH_REDUCESCATTER;

    return check_stretch(work, &pattern, output, work->output_count,
                         is_scattered ? work->rank * work->output_count : 0, err);
}

/* Checks a block from each rank: its whole input, or its block for this rank. */
static int check_blocks(const struct bench_work *work, const char *output,
                        struct hvd_error *err)
{
    int64_t count = work->output_count / work->size;
    int64_t place = work->collective == BENCH_ALLTOALL ? work->rank * count : 0;
    int status = 0;

    for (int rank = 0; rank < work->size && status == 0; rank++) {
        struct pattern pattern = pattern_of_rank(work, rank);

        status =
            check_stretch(work, &pattern, output + (size_t)(rank * count) * pattern.bytes,
                          count, place, err);
    }
    return status;
}

/* Compares the output with the input of `sender`, beginning at its element `place`. */
static int check_sent(const struct bench_work *work, int sender, int64_t place,
                      const char *output, struct hvd_error *err)
{
    struct pattern pattern = pattern_of_rank(work, sender);

    return check_stretch(work, &pattern, output, work->output_count, place, err);
}

/* Returns the rank whose message this rank receives; -1: none. */
static int sender_of(const struct bench_work *work)
{
    if (work->collective == BENCH_SENDRECV) {
        return (work->rank + work->size - 1) % work->size;
    }
    return (work->rank ^ 1) < work->size ? work->rank ^ 1 : -1;
}

static int check_output(const struct bench_work *work, const char *output,
                        struct hvd_error *err)
{
    if (bench_collective_ends_at_root(work->collective) && work->rank != 0) {
        return 0;
    }
    switch (work->collective) {
    case BENCH_ALLREDUCE:
    case BENCH_REDUCESCATTER:
    case BENCH_REDUCE:
        return check_reduced(work, output, err);
    case BENCH_ALLGATHER:
    case BENCH_ALLTOALL:
    case BENCH_GATHER:
        return check_blocks(work, output, err);
    case BENCH_SCATTER:
        return check_sent(work, 0, work->rank * work->output_count, output, err);
    case BENCH_BROADCAST:
        return check_sent(work, 0, 0, output, err);
    case BENCH_SENDRECV:
    case BENCH_PINGPONG:
        return sender_of(work) < 0 ? 0
                                   : check_sent(work, sender_of(work), 0, output, err);
    default:
        return 0;
    }
}

int bench_work_check(const struct bench_work *work, const void *output, const char *who,
                     struct hvd_error *err)
{
    struct hvd_error cause;
    char title[80];
    int status = check_output(work, output, &cause);

    return status == 0 ? 0
                       : hvd_fail(err, status, "wrong result of %s, %s, %lld bytes: %s",
                                  who, bench_work_title(work, title, sizeof(title)),
                                  (long long)work->bytes, cause.text);
}

const char *bench_work_title(const struct bench_work *work, char *text, size_t room)
{
    bool has_op = bench_collective_reduces(work->collective);

    if (work->collective == BENCH_BARRIER) {
        snprintf(text, room, "barrier");
    } else {
        snprintf(text, room, "%s %s%s%s", bench_collective_name(work->collective),
                 hvd_dtype_name(work->dtype), has_op ? " " : "",
                 has_op ? bench_op_name(work->op) : "");
    }
    return text;
}
