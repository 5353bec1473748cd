/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of 16-bit floats with a prescale factor are rounded only once: they equal
 * the rounded result of the same reduction in double. Runs as each rank of a job. Rank 0
 * prints TAP; a rank that finds an error ends with status 1. */
#include <string.h>

#include "collectives/reduce/half.h"
#include "tests/collectives/rank_values.h"
#include "tests/collectives/report.h"

enum {
    MOST = 300000,
    TENSORS = 3,
};

/* The factors have few bits, so that a float holds every product and every sum of the
 * values below exactly. */
static const double prescale = 0.375, postscale = 0.25;
static const int64_t counts[] = {1, 100, 5000, MOST};

static uint16_t input[MOST], output[MOST];
static int rank, size;
static uint32_t seed;
static enum hvd_dtype dtype;

static uint16_t rounded(double value)
{
    return dtype == HVD_FLOAT16 ? hvd_float_to_float16((float)value)
                                : hvd_float_to_bfloat16((float)value);
}

/* Returns a value that may need all bits of the type. */
static double value_at(int of, int64_t i)
{
    int range = dtype == HVD_FLOAT16 ? 2047 : 255;

    return ((int)(value_random(seed, of, i) % (2 * (uint32_t)range)) - range) / 8.0;
}

static double expected(enum hvd_op op, int64_t i)
{
    double result = prescale * value_at(0, i);

    for (int of = 1; of < size; of++) {
        double value = prescale * value_at(of, i);

        if (op == HVD_MAX) {
            result = value > result ? value : result;
        } else {
            result += value;
        }
    }
    return postscale * result;
}

static bool is_expected(enum hvd_op op, int64_t begin, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double wanted = expected(op, begin + i);

        if (output[i] != rounded(wanted)) {
            fprintf(stderr,
                    "# rank %d, %s, seed %u: element %lld of %lld is %04x, not %04x\n",
                    rank, hvd_dtype_name(dtype), seed, (long long)i, (long long)count,
                    output[i], rounded(wanted));
            return false;
        }
    }
    return true;
}

static void fill(int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        input[i] = rounded(value_at(rank, i));
    }
}

static bool allreduces(enum hvd_op op, int64_t count, bool is_in_place)
{
    struct hvd_tensor tensor = call_tensor("all", dtype, &count, 1, input, output);

    fill(count);
    if (is_in_place) {
        memcpy(output, input, sizeof(output));
        tensor.input = output;
    }
    call_allreduce(&tensor, 1, op, prescale, postscale, 0);
    return is_expected(op, 0, count);
}

/* Sums several tensors that are adjacent in memory. */
static bool allreduces_some(void)
{
    const int64_t part = 7001;
    struct hvd_tensor tensors[TENSORS];
    char names[TENSORS][8];

    fill(TENSORS * part);
    for (int i = 0; i < TENSORS; i++) {
        snprintf(names[i], sizeof(names[i]), "%d", i);
        tensors[i] =
            call_tensor(names[i], dtype, &part, 1, input + i * part, output + i * part);
    }
    call_allreduce(tensors, TENSORS, HVD_SUM, prescale, postscale, 0);
    return is_expected(HVD_SUM, 0, TENSORS * part);
}

static bool scatters(int64_t part)
{
    const int64_t all = part * size;
    struct hvd_tensor tensor = call_tensor("part", dtype, &all, 1, input, output);

    fill(all);
    call_reducescatter(&tensor, 1, HVD_SUM, prescale, postscale, 0);
    return is_expected(HVD_SUM, rank * part, part);
}

static void test_dtype(void)
{
    bool sums = true, in_place = true, most = true;

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        sums = allreduces(HVD_SUM, counts[i], false) && sums;
        in_place = allreduces(HVD_SUM, counts[i], true) && in_place;
        most = allreduces(HVD_MAX, counts[i], false) && most;
    }
    report_alone(sums, "sums of %s are rounded once", hvd_dtype_name(dtype));
    report_alone(in_place, "sums of %s in place are rounded once", hvd_dtype_name(dtype));
    report_alone(most, "the maximum of %s is rounded once", hvd_dtype_name(dtype));
    report_alone(allreduces_some(), "sums of several tensors of %s are rounded once",
                 hvd_dtype_name(dtype));
    report_alone(scatters(1000), "sums of %s by reducescatter are rounded once",
                 hvd_dtype_name(dtype));
    report_alone(scatters(MOST / size),
                 "large sums of %s by reducescatter are rounded once",
                 hvd_dtype_name(dtype));
}

int main(void)
{
    rank = report_init();
    size = hvd_size();
    seed = call_seed();
    dtype = HVD_FLOAT16;
    test_dtype();
    dtype = HVD_BFLOAT16;
    test_dtype();
    hvd_shutdown();
    return report_done();
}
