/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of the stand-in for NCCL: slow and simple. */
#include "tests/fake_gpu/fake_reduce.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

size_t fake_dtype_bytes(int dtype)
{
    static const size_t bytes[FAKE_DTYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

    return bytes[dtype];
}

static float from_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static double load_half(uint16_t half)
{
    int exponent = (half >> 10) & 31;
    double fraction = half & 1023;
    double value =
        exponent == 0 ? ldexp(fraction, -24) : ldexp(fraction + 1024, exponent - 25);

    value = exponent == 31 ? (fraction == 0 ? INFINITY : NAN) : value;
    return (half & 0x8000) != 0 ? -value : value;
}

/* Converts to float16. Rounds to nearest even, which is the current rounding mode. */
static uint16_t store_half(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(value);
    int exponent;
    double scaled;

    if (isnan(value)) {
        return 0x7e00;
    }
    if (size >= 65520.0) {
        return sign | 0x7c00;
    }
    frexp(size, &exponent); /* sets exponent to 0 if size is 0 */
    exponent = exponent < -13 || size == 0 ? -13 : exponent;
    scaled = nearbyint(ldexp(size, 11 - exponent)); /* 1024 to 2048 if normal */
    return (uint16_t)(sign | (uint16_t)(scaled + (double)((exponent + 13) << 10)));
}

static uint16_t store_bfloat(double value)
{
    float single = (float)value;
    uint32_t bits;

    memcpy(&bits, &single, sizeof(bits));
    return isnan(value) ? 0x7fc0 : (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static double load_float(int dtype, const char *at)
{
    uint16_t half;
    float single;
    double twice;

    if (dtype == FAKE_FLOAT64) {
        memcpy(&twice, at, sizeof(twice));
        return twice;
    }
    if (dtype == FAKE_FLOAT32) {
        memcpy(&single, at, sizeof(single));
        return single;
    }
    memcpy(&half, at, sizeof(half));
    return dtype == FAKE_FLOAT16 ? load_half(half) : from_bits((uint32_t)half << 16);
}

static void store_float(int dtype, double value, char *at)
{
    uint16_t half = dtype == FAKE_FLOAT16 ? store_half(value) : store_bfloat(value);
    float single = (float)value;

    memcpy(at,
           dtype == FAKE_FLOAT64   ? (void *)&value
           : dtype == FAKE_FLOAT32 ? (void *)&single
                                   : (void *)&half,
           fake_dtype_bytes(dtype));
}

double fake_scalar(int dtype, const void *scalar)
{
    return load_float(dtype, scalar);
}

static double reduce_float(int dtype, int op, double factor, const void *const *sources,
                           int count, size_t at)
{
    double result = load_float(dtype, (const char *)sources[0] + at) * factor;

    for (int i = 1; i < count; i++) {
        double next = load_float(dtype, (const char *)sources[i] + at) * factor;

        result = op == FAKE_PROD  ? result * next
                 : op == FAKE_MAX ? fmax(result, next)
                 : op == FAKE_MIN ? fmin(result, next)
                                  : result + next;
    }
    return op == FAKE_AVG ? result / count : result;
}

/* Extends signed integers by their sign, so that signed and unsigned types differ only in
 * comparisons and averages. */
static uint64_t load_integer(int dtype, const char *at)
{
    size_t bytes = fake_dtype_bytes(dtype);
    int shift = (int)(64 - 8 * bytes);
    uint64_t value = 0;

    memcpy(&value, at, bytes);
    return dtype == FAKE_INT8 || dtype == FAKE_INT32
               ? (uint64_t)((int64_t)(value << shift) >> shift)
               : value;
}

static uint64_t reduce_integer(int dtype, int op, const void *const *sources, int count,
                               size_t at)
{
    bool is_signed = dtype == FAKE_INT8 || dtype == FAKE_INT32 || dtype == FAKE_INT64;
    uint64_t result = load_integer(dtype, (const char *)sources[0] + at);

    for (int i = 1; i < count; i++) {
        uint64_t next = load_integer(dtype, (const char *)sources[i] + at);
        bool is_less = is_signed ? (int64_t)next < (int64_t)result : next < result;

        result = op == FAKE_PROD  ? result * next
                 : op == FAKE_MAX ? (is_less ? result : next)
                 : op == FAKE_MIN ? (is_less ? next : result)
                                  : result + next;
    }
    return op != FAKE_AVG ? result
           : is_signed    ? (uint64_t)((int64_t)result / count)
                          : result / (uint64_t)count;
}

void fake_reduce(int dtype, int op, double factor, const void *const *sources,
                 int source_count, size_t count, void *to)
{
    size_t bytes = fake_dtype_bytes(dtype);

    for (size_t at = 0; at < count * bytes; at += bytes) {
        if (dtype >= FAKE_FLOAT16) {
            store_float(dtype, reduce_float(dtype, op, factor, sources, source_count, at),
                        (char *)to + at);
        } else {
            uint64_t value = reduce_integer(dtype, op, sources, source_count, at);

            memcpy((char *)to + at, &value, bytes); /* little endian */
        }
    }
}
