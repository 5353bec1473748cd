/* SPDX-License-Identifier: Apache-2.0 */
/* Computes inputs and expected results. */
#include "contrib/bench/hvd_bench/values.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "collectives/reduce/half.h"

double bench_value(enum hvd_op op, int rank, int size, int phase)
{
    if (op == HVD_PRODUCT) {
        /* at each phase one rank has a 2, so that products stay small */
        return (phase + rank) % size == 0 ? 2 : 1;
    }
    return (phase + 3 * rank) % BENCH_PERIOD;
}

static double combine(enum hvd_op op, double a, double b)
{
    switch (op) {
    case HVD_MIN:
        return a < b ? a : b;
    case HVD_MAX:
        return a > b ? a : b;
    case HVD_PRODUCT:
        return a * b;
    default:
        return a + b;
    }
}

static bool is_float(enum hvd_dtype dtype)
{
    return dtype == HVD_FLOAT16 || dtype == HVD_FLOAT32 || dtype == HVD_FLOAT64 ||
           dtype == HVD_BFLOAT16;
}

/* Wraps a sum as an integer type does. */
static double wrap(enum hvd_dtype dtype, double value)
{
    int64_t whole = (int64_t)value;

    switch (dtype) {
    case HVD_UINT8:
        return (uint8_t)whole;
    case HVD_INT8:
        return (int8_t)whole;
    case HVD_UINT16:
        return (uint16_t)whole;
    case HVD_INT16:
        return (int16_t)whole;
    default:
        return value; /* sums of this many ranks fit */
    }
}

double bench_value_reduced(enum hvd_op op, enum hvd_dtype dtype, int size, int phase)
{
    double value = bench_value(op, 0, size, phase);

    if (dtype == HVD_BOOL) {
        value = value != 0;
    }
    for (int rank = 1; rank < size; rank++) {
        double next = bench_value(op, rank, size, phase);

        value = combine(op, value, dtype == HVD_BOOL ? next != 0 : next);
    }
    if (op == HVD_AVERAGE) {
        value = is_float(dtype) ? value / size : trunc(wrap(dtype, value) / size);
    }
    return value;
}

static uint64_t whole(double value)
{
    return (uint64_t)(int64_t)value;
}

/* All machines that hvd runs on are little-endian. */
void bench_value_store(enum hvd_dtype dtype, double value, void *element)
{
    float single = (float)value;
    uint16_t half;
    uint64_t bits;

    switch (dtype) {
    case HVD_FLOAT64:
        memcpy(element, &value, sizeof(value));
        break;
    case HVD_FLOAT32:
        memcpy(element, &single, sizeof(single));
        break;
    case HVD_FLOAT16:
    case HVD_BFLOAT16:
        half = dtype == HVD_FLOAT16 ? hvd_float_to_float16(single)
                                    : hvd_float_to_bfloat16(single);
        memcpy(element, &half, sizeof(half));
        break;
    default:
        bits = dtype == HVD_BOOL ? value != 0 : whole(value);
        memcpy(element, &bits, hvd_dtype_bytes(dtype));
        break;
    }
}

double bench_value_load(enum hvd_dtype dtype, const void *element)
{
    double value;
    float single;
    uint16_t half;
    uint64_t bits = 0;

    switch (dtype) {
    case HVD_FLOAT64:
        memcpy(&value, element, sizeof(value));
        return value;
    case HVD_FLOAT32:
        memcpy(&single, element, sizeof(single));
        return single;
    case HVD_FLOAT16:
        memcpy(&half, element, sizeof(half));
        return hvd_float16_to_float(half);
    case HVD_BFLOAT16:
        memcpy(&half, element, sizeof(half));
        return hvd_bfloat16_to_float(half);
    default:
        memcpy(&bits, element, hvd_dtype_bytes(dtype));
        return (double)bits;
    }
}
