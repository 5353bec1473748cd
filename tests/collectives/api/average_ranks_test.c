/* SPDX-License-Identifier: Apache-2.0 */
/* Averages of integers are quotients, truncated toward zero: over all ranks, over a
 * process set, and after some ranks have joined. Runs as each rank of a job. Rank 0
 * prints TAP; a rank that finds an error ends with status 1. Also runs on GPUs
 * (gpu/on_gpu.h). */
#include <string.h>

#include "tests/collectives/rank_values.h"
#include "tests/collectives/report.h"

enum {
    COUNT = 20000,
    MOST_RANKS = 8,
};

static const enum hvd_dtype dtypes[] = {HVD_INT8,  HVD_UINT8,  HVD_INT16, HVD_UINT16,
                                        HVD_INT32, HVD_UINT32, HVD_INT64, HVD_UINT64};

static char input[COUNT * 8], output[COUNT * 8];
static int rank, size;
static uint32_t seed;

/* --- reference arithmetic --- */

/* Returns an element: a limit of the type, a value beside one, or a random number, small
 * or large. */
static uint64_t value_at(enum hvd_dtype dtype, int of, int64_t i)
{
    uint64_t top = UINT64_C(1) << (8 * hvd_dtype_bytes(dtype) - 1);
    const uint64_t limits[] = {1, UINT64_MAX, top, top - 1, top + 1, 0};
    uint64_t low = value_random(seed, of, 2 * i),
             high = value_random(seed, of, 2 * i + 1);

    return i % 4 == 0 ? limits[i / 4 % 6] : (high << 32 | low) >> high % 64;
}

/* Whether output holds the averages of elements [begin, begin + count): the sum over
 * ranks 0 to last - 1, divided by `ranks`. */
static bool is_average(enum hvd_dtype dtype, int last, int ranks, int64_t begin,
                       int64_t count)
{
    size_t bytes = hvd_dtype_bytes(dtype);

    for (int64_t i = 0; i < count; i++) {
        uint64_t sum = 0, wanted, found = 0;

        for (int of = 0; of < last; of++) {
            sum += value_at(dtype, of, begin + i);
        }
        wanted = value_quotient(dtype, sum, (uint32_t)ranks);
        memcpy(&found, output + (size_t)i * bytes, bytes);
        if (value_of_bits(dtype, found) != wanted) {
            fprintf(stderr, "# rank %d, %s, seed %u: element %lld is %llx, not %llx\n",
                    rank, hvd_dtype_name(dtype), seed, (long long)i,
                    (unsigned long long)found, (unsigned long long)wanted);
            return false;
        }
    }
    return true;
}

/* --- calls --- */

static struct hvd_tensor fill(enum hvd_dtype dtype, const int64_t *count)
{
    size_t bytes = hvd_dtype_bytes(dtype);

    for (int64_t i = 0; i < *count; i++) {
        uint64_t value = value_at(dtype, rank, i);

        memcpy(input + (size_t)i * bytes, &value, bytes);
    }
    return call_tensor(hvd_dtype_name(dtype), dtype, count, 1, input, output);
}

static void allreduce(enum hvd_dtype dtype, int set)
{
    const int64_t count = COUNT;
    struct hvd_tensor tensor = fill(dtype, &count);

    call_allreduce(&tensor, 1, HVD_AVERAGE, 1, 1, set);
}

static void test_all(enum hvd_dtype dtype)
{
    allreduce(dtype, HVD_SET_GLOBAL);
    report_alone(is_average(dtype, size, size, 0, COUNT), "averages of %s are right",
                 hvd_dtype_name(dtype));
}

static void test_reducescatter(enum hvd_dtype dtype)
{
    const int64_t all = COUNT, part = all / size, extra = all % size;
    int64_t begin = rank * part + (rank < extra ? rank : extra);
    struct hvd_tensor tensor = fill(dtype, &all);

    call_reducescatter(&tensor, 1, HVD_AVERAGE, 1, 1, HVD_SET_GLOBAL);
    report_alone(is_average(dtype, size, size, begin, part + (rank < extra)),
                 "averages of %s by reducescatter are right", hvd_dtype_name(dtype));
}

/* Adds a set of all ranks but the last one. All ranks must call it. */
static int add_set(void)
{
    int ranks[MOST_RANKS];

    for (int i = 0; i < size - 1; i++) {
        ranks[i] = i;
    }
    return call_set_add(ranks, size - 1);
}

static void test_set(enum hvd_dtype dtype, int set)
{
    bool is_good = true;

    if (rank < size - 1) {
        allreduce(dtype, set);
        is_good = is_average(dtype, size - 1, size - 1, 0, COUNT);
    }
    report_alone(is_good, "averages of %s in a process set are right",
                 hvd_dtype_name(dtype));
}

/* The last rank has joined: it contributes zeros, but the divisor still counts it. */
static void test_joined(enum hvd_dtype dtype)
{
    bool is_good = true;

    if (rank < size - 1) {
        allreduce(dtype, HVD_SET_GLOBAL);
        is_good = is_average(dtype, size - 1, size, 0, COUNT);
    }
    call_join();
    report_alone(is_good, "averages of %s after a join are right", hvd_dtype_name(dtype));
}

int main(void)
{
    int set = -1;

    rank = report_init();
    size = hvd_size();
    seed = call_seed();
    set = size > 2 ? add_set() : -1;
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        test_all(dtypes[i]);
        test_reducescatter(dtypes[i]);
        if (set >= 0) {
            test_set(dtypes[i], set);
        }
        if (size > 1) {
            test_joined(dtypes[i]);
        }
    }
    hvd_shutdown();
    return report_done();
}
