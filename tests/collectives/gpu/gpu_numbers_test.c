/* SPDX-License-Identifier: Apache-2.0 */
/* Runs hierarchical allreduces in which kernels convert and scale, on the stand-in.
 * Checks the results, and the type in which elements travel: it determines the number of
 * pieces. Runs as each rank of a job. Rank 0 prints TAP; other ranks exit with 1 if
 * something is wrong. */
#include <stdlib.h>
#include <string.h>

#include "collectives/hvd.h"
#include "collectives/reduce/half.h"
#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/collectives/report.h"
#include "tests/fake_gpu/fake_cuda.h"

enum {
    COUNT = 1 << 20, /* a multiple of the largest piece, in each type */
    TENSORS = 5, /* per group */
    BYTES = COUNT * (int)sizeof(int64_t),
};

/* These place tensors at various offsets in the memory for packed tensors. */
static const int64_t counts[TENSORS] = {1, 70001, 0, 3, 100000};

static const struct reduction {
    const char *name;
    enum hvd_dtype dtype;
    int wire;
    enum hvd_op op;
    double prescale;
    double postscale;
    int bytes; /* bytes of an element in transit */
} plain = {"a sum of float32", HVD_FLOAT32, 0, HVD_SUM, 1, 1, 4},
  reductions[] = {
      {"a scaled sum that NCCL scales", HVD_FLOAT32, 0, HVD_SUM, 0.5, 0.5, 4},
      {"a sum as float16", HVD_FLOAT32, HVD_FLOAT16, HVD_SUM, 1, 1, 2},
      {"a scaled sum as float16", HVD_FLOAT32, HVD_FLOAT16, HVD_SUM, 0.5, 4, 2},
      {"an average as float16", HVD_FLOAT32, HVD_FLOAT16, HVD_AVERAGE, 1, 1, 2},
      {"a sum as bfloat16", HVD_FLOAT32, HVD_BFLOAT16, HVD_SUM, 1, 1, 2},
      {"a scaled sum as bfloat16", HVD_FLOAT32, HVD_BFLOAT16, HVD_SUM, 0.5, 4, 2},
      {"a sum of float16 with a factor that underflows in float16", HVD_FLOAT16, 0,
       HVD_SUM, 0x1p-16, 0.25, 4},
      {"an average of int32", HVD_INT32, 0, HVD_AVERAGE, 1, 1, 4},
      {"a scaled sum of int64", HVD_INT64, 0, HVD_SUM, 0.5, 3, 8},
      {"a maximum of scaled float32", HVD_FLOAT32, 0, HVD_MAX, -2, 3, 4},
};

static int rank, size;
static void *stream;
static char *memory; /* on the device */
static char *values;

/* Returns integers whose sums every type can hold. */
static double value_of(int of, int64_t i)
{
    return (double)((3 * of + i) % 9) - 4;
}

/* Multiplies as kernels do: integers are truncated, other types are multiplied as
 * float32. */
static double scale(const struct reduction *reduction, double value, double factor)
{
    bool is_whole = reduction->dtype == HVD_INT32 || reduction->dtype == HVD_INT64;

    return is_whole ? (double)(int64_t)(value * factor)
                    : (double)((float)value * (float)factor);
}

static double expected(const struct reduction *reduction, int64_t i)
{
    bool is_average = reduction->op == HVD_AVERAGE;
    double postscale = is_average ? reduction->postscale / size : reduction->postscale;
    double result = 0;

    for (int r = 0; r < size; r++) {
        double value = scale(reduction, value_of(r, i), reduction->prescale);

        if (reduction->op == HVD_MAX) {
            result = r == 0 || value > result ? value : result;
        } else {
            result += value;
        }
    }
    return scale(reduction, result, postscale);
}

static void put(enum hvd_dtype dtype, double value, char *to)
{
    float single = (float)value;
    uint16_t half = hvd_float_to_float16(single);
    int32_t small = (int32_t)value;
    int64_t large = (int64_t)value;
    const void *from = dtype == HVD_FLOAT32   ? (const void *)&single
                       : dtype == HVD_FLOAT16 ? (const void *)&half
                       : dtype == HVD_INT32   ? (const void *)&small
                                              : (const void *)&large;

    memcpy(to, from, hvd_dtype_bytes(dtype));
}

static double take(enum hvd_dtype dtype, const char *from)
{
    float single = 0;
    uint16_t half = 0;
    int32_t small = 0;
    int64_t large = 0;

    switch (dtype) {
    case HVD_FLOAT32:
        memcpy(&single, from, sizeof(single));
        return (double)single;
    case HVD_FLOAT16:
        memcpy(&half, from, sizeof(half));
        return (double)hvd_float16_to_float(half);
    case HVD_INT32:
        memcpy(&small, from, sizeof(small));
        return small;
    default:
        memcpy(&large, from, sizeof(large));
        return (double)large;
    }
}

/* --- an allreduce, in place --- */

static void fill(enum hvd_dtype dtype, int64_t count)
{
    size_t bytes = hvd_dtype_bytes(dtype);

    for (int64_t i = 0; i < count; i++) {
        put(dtype, value_of(rank, i), values + (size_t)i * bytes);
    }
    gpu_copy(memory, values, (size_t)count * bytes, stream);
}

static void reduce(const struct reduction *reduction, const struct hvd_tensor *tensors,
                   int count)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int status =
        hvd_allreduce_start(tensors, count, reduction->op, reduction->prescale,
                            reduction->postscale, HVD_SET_GLOBAL, &request, &err);

    if (status == 0) {
        status = hvd_wait_on(request, stream, -1, &err);
    }
    if (status != 0) {
        fprintf(stderr, "# rank %d, %s: %s\n", rank, reduction->name, err.text);
        exit(1);
    }
    hvd_request_free(request);
}

static bool is_right(const struct reduction *reduction, int64_t count)
{
    size_t bytes = hvd_dtype_bytes(reduction->dtype);

    memset(values, 0, (size_t)count * bytes);
    gpu_copy(values, memory, (size_t)count * bytes, stream);
    gpu_finish(stream);
    for (int64_t i = 0; i < count; i++) {
        double got = take(reduction->dtype, values + (size_t)i * bytes);

        if (got != expected(reduction, i)) {
            fprintf(stderr, "# rank %d, %s: element %lld of %lld is %g, not %g\n", rank,
                    reduction->name, (long long)i, (long long)count, got,
                    expected(reduction, i));
            return false;
        }
    }
    return true;
}

/* Reduces one large tensor and checks the result. Returns the number of pieces. */
static long reduce_large(const struct reduction *reduction, bool *is_good)
{
    const int64_t count = COUNT;
    struct hvd_tensor tensor =
        gpu_tensor(reduction->name, reduction->dtype, &count, 1, memory, memory, stream);

    tensor.wire = reduction->wire;
    fill(reduction->dtype, count);
    fake_gpu_fail_in("ncclReduceScatter", 0);
    reduce(reduction, &tensor, 1);
    *is_good = is_right(reduction, count);
    *is_good &= call_is_same(values, (size_t)count * hvd_dtype_bytes(reduction->dtype));
    return fake_gpu_fail_in(NULL, 0);
}

/* Reduces the tensors of a group, which follow each other in the same memory. */
static bool reduce_group(const struct reduction *reduction)
{
    static char names[TENSORS][64];
    struct hvd_tensor tensors[TENSORS];
    int64_t all = 0;

    for (int i = 0; i < TENSORS; i++) {
        char *at = memory + (size_t)all * hvd_dtype_bytes(reduction->dtype);

        snprintf(names[i], sizeof(names[i]), "%d: %s", i, reduction->name);
        tensors[i] =
            gpu_tensor(names[i], reduction->dtype, &counts[i], 1, at, at, stream);
        tensors[i].wire = reduction->wire;
        all += counts[i];
    }
    fill(reduction->dtype, all);
    reduce(reduction, tensors, TENSORS);
    return is_right(reduction, all);
}

static void test_reduction(const struct reduction *reduction, long plain_pieces)
{
    char promise[128];
    bool is_good;
    long pieces = reduce_large(reduction, &is_good);

    snprintf(promise, sizeof(promise), "%s is right, and the same on all ranks",
             reduction->name);
    report(is_good, "%s", promise);
    if (pieces * plain.bytes != plain_pieces * reduction->bytes) {
        fprintf(stderr, "# rank %d: %ld pieces, %ld of float32\n", rank, pieces,
                plain_pieces);
    }
    snprintf(promise, sizeof(promise), "%s goes in pieces, with %d bytes per element",
             reduction->name, reduction->bytes);
    report(pieces * plain.bytes == plain_pieces * reduction->bytes, "%s", promise);
    snprintf(promise, sizeof(promise), "%s of a group of tensors is right",
             reduction->name);
    report(reduce_group(reduction), "%s", promise);
}

int main(void)
{
    bool is_good;
    long plain_pieces;

    if (!gpu_open()) {
        return 1;
    }
    rank = report_init();
    size = hvd_size();
    stream = gpu_stream();
    memory = gpu_memory(BYTES);
    values = malloc(BYTES);
    if (values == NULL) {
        fprintf(stderr, "# no memory\n");
        return 1;
    }
    plain_pieces = reduce_large(&plain, &is_good);
    report(is_good && plain_pieces > 4, "%s", plain.name);
    for (size_t i = 0; i < sizeof(reductions) / sizeof(reductions[0]); i++) {
        test_reduction(&reductions[i], plain_pieces);
    }
    free(values);
    hvd_shutdown();
    return report_done();
}
