/* SPDX-License-Identifier: Apache-2.0 */
/* Plain arithmetic to compare with: it uses no bit tricks and no blocks, and shares
 * nothing with the code under test. */
#include "tests/collectives/reduce/reduce_reference.h"

#include <math.h>
#include <string.h>

/* A binary float format, or a two's complement format if fraction_bits is 0. */
struct shape {
    int bytes;
    bool is_signed;
    int fraction_bits;
    int least_exponent; /* least exponent of normal numbers */
};

static const struct shape shapes[HVD_DTYPE_COUNT] = {
    [HVD_UINT8] = {1, false, 0, 0},       [HVD_INT8] = {1, true, 0, 0},
    [HVD_UINT16] = {2, false, 0, 0},      [HVD_INT16] = {2, true, 0, 0},
    [HVD_INT32] = {4, true, 0, 0},        [HVD_INT64] = {8, true, 0, 0},
    [HVD_FLOAT16] = {2, true, 10, -14},   [HVD_FLOAT32] = {4, true, 23, -126},
    [HVD_FLOAT64] = {8, true, 52, -1022}, [HVD_BOOL] = {1, false, 0, 0},
    [HVD_BFLOAT16] = {2, true, 7, -126},  [HVD_UINT32] = {4, false, 0, 0},
    [HVD_UINT64] = {8, false, 0, 0},
};

bool reference_is_float(enum hvd_dtype dtype)
{
    return shapes[dtype].fraction_bits > 0;
}

enum hvd_dtype reference_partial(enum hvd_dtype dtype)
{
    return dtype == HVD_FLOAT16 || dtype == HVD_BFLOAT16 ? HVD_FLOAT32 : dtype;
}

/* Wraps a number to the width of dtype. */
static uint64_t wrapped(enum hvd_dtype dtype, uint64_t whole)
{
    int unused = 64 - 8 * shapes[dtype].bytes;

    whole <<= unused;
    return shapes[dtype].is_signed ? (uint64_t)((int64_t)whole >> unused)
                                   : whole >> unused;
}

static double real_of(enum hvd_dtype dtype, uint64_t bits)
{
    const struct shape *shape = &shapes[dtype];
    uint64_t sign_bit = 1ull << (8 * shape->bytes - 1);
    uint64_t magnitude = bits & (sign_bit - 1);
    uint64_t hidden = 1ull << shape->fraction_bits;
    uint64_t infinity = (sign_bit - 1) & ~(hidden - 1);
    int exponent = (int)(magnitude >> shape->fraction_bits);
    uint64_t digits = (magnitude & (hidden - 1)) | (exponent > 0 ? hidden : 0);
    int scale =
        shape->least_exponent - shape->fraction_bits + (exponent > 0 ? exponent - 1 : 0);
    double value = ldexp((double)digits, scale);

    if (magnitude >= infinity) {
        value = magnitude > infinity ? NAN : INFINITY;
    }
    return bits & sign_bit ? -value : value;
}

static uint64_t bits_of(enum hvd_dtype dtype, double value)
{
    const struct shape *shape = &shapes[dtype];
    uint64_t sign_bit = 1ull << (8 * shape->bytes - 1);
    uint64_t hidden = 1ull << shape->fraction_bits;
    uint64_t infinity = (sign_bit - 1) & ~(hidden - 1);
    uint64_t sign = signbit(value) ? sign_bit : 0;
    int exponent;
    uint64_t magnitude;

    if (isnan(value) || isinf(value)) {
        return sign | infinity | (isnan(value) ? hidden >> 1 : 0);
    }
    frexp(value, &exponent);
    exponent = value == 0 || exponent - 1 < shape->least_exponent ? shape->least_exponent
                                                                  : exponent - 1;
    /* If rounding carries out of the fraction, the exponent grows by one; above the
     * largest exponent, the result is infinity. */
    magnitude = (uint64_t)nearbyint(ldexp(fabs(value), shape->fraction_bits - exponent));
    magnitude += (uint64_t)(exponent - shape->least_exponent) << shape->fraction_bits;
    return sign | (magnitude < infinity ? magnitude : infinity);
}

struct element reference_load(enum hvd_dtype dtype, const void *array, size_t index)
{
    size_t bytes = (size_t)shapes[dtype].bytes;
    struct element value = {0};
    uint64_t bits = 0;

    memcpy(&bits, (const char *)array + index * bytes, bytes);
    if (reference_is_float(dtype)) {
        value.real = real_of(dtype, bits);
    } else {
        value.whole = wrapped(dtype, bits);
    }
    return value;
}

void reference_store(enum hvd_dtype dtype, struct element value, void *array,
                     size_t index)
{
    size_t bytes = (size_t)shapes[dtype].bytes;
    uint64_t bits = reference_is_float(dtype) ? bits_of(dtype, value.real) : value.whole;

    memcpy((char *)array + index * bytes, &bits, bytes);
}

static bool is_less(enum hvd_dtype dtype, struct element a, struct element b)
{
    if (reference_is_float(dtype)) {
        bool is_lesser_zero = a.real == b.real && signbit(a.real) && !signbit(b.real);

        return a.real < b.real || is_lesser_zero;
    }
    return shapes[dtype].is_signed ? (int64_t)a.whole < (int64_t)b.whole
                                   : a.whole < b.whole;
}

static struct element extreme(enum hvd_dtype dtype, enum hvd_op op, struct element a,
                              struct element b)
{
    if (isnan(a.real) || isnan(b.real)) {
        return isnan(a.real) ? a : b;
    }
    return is_less(dtype, a, b) == (op == HVD_MIN) ? a : b;
}

static uint64_t bitwise(enum hvd_op op, uint64_t a, uint64_t b)
{
    return op == HVD_BAND ? a & b : op == HVD_BOR ? a | b : a ^ b;
}

struct element reference_combine(enum hvd_dtype dtype, enum hvd_op op, struct element a,
                                 struct element b)
{
    bool is_product = op == HVD_PRODUCT;
    struct element value = {0};

    if (op >= HVD_BAND) {
        value.whole = bitwise(op, a.whole, b.whole);
    } else if (dtype == HVD_BOOL) {
        bool is_and = is_product || op == HVD_MIN;

        value.whole = is_and ? a.whole && b.whole : a.whole || b.whole;
    } else if (op == HVD_MIN || op == HVD_MAX) {
        value = extreme(dtype, op, a, b);
    } else if (dtype == HVD_FLOAT64) {
        value.real = is_product ? a.real * b.real : a.real + b.real;
    } else if (reference_is_float(dtype)) {
        /* double has more than twice the digits of float, so rounding twice gives the
         * same result */
        value.real = (float)(is_product ? a.real * b.real : a.real + b.real);
    } else {
        value.whole = wrapped(dtype, is_product ? a.whole * b.whole : a.whole + b.whole);
    }
    return value;
}

static struct element scaled_whole(enum hvd_dtype dtype, double factor, double divisor,
                                   uint64_t whole)
{
    const struct shape *shape = &shapes[dtype];
    double value = shape->is_signed ? (double)(int64_t)whole : (double)whole;
    double scaled = trunc(factor * value / divisor);
    double end = ldexp(1, 8 * shape->bytes - (shape->is_signed ? 1 : 0));
    uint64_t most = UINT64_MAX >> (64 - 8 * shape->bytes + (shape->is_signed ? 1 : 0));
    struct element result = {0};

    if (scaled >= end) {
        result.whole = most;
    } else if (scaled < 0) {
        double least = shape->is_signed ? -end : 0;

        result.whole = (uint64_t)(int64_t)(scaled < least ? least : scaled);
    } else {
        result.whole = (uint64_t)scaled;
    }
    return result;
}

struct element reference_scale(enum hvd_dtype dtype, double factor, struct element value)
{
    struct element result = value;

    if (factor == 1.0 || dtype == HVD_BOOL) {
        return value;
    }
    if (!reference_is_float(dtype)) {
        return scaled_whole(dtype, factor, 1, value.whole);
    }
    result.real = dtype == HVD_FLOAT64 ? factor * value.real
                                       : (float)((double)(float)factor * value.real);
    return result;
}

static struct element quotient(enum hvd_dtype dtype, uint64_t whole, uint32_t divisor)
{
    struct element result = {.whole = whole / divisor};

    if (shapes[dtype].is_signed) {
        result.whole = (uint64_t)((int64_t)whole / (int64_t)divisor);
    }
    return result;
}

struct element reference_average(enum hvd_dtype dtype, double factor, uint32_t divisor,
                                 struct element value)
{
    if (divisor < 2) {
        return reference_scale(dtype, factor, value);
    }
    if (reference_is_float(dtype) || dtype == HVD_BOOL) {
        return reference_scale(dtype, factor / divisor, value);
    }
    return factor == 1.0 ? quotient(dtype, value.whole, divisor)
                         : scaled_whole(dtype, factor, divisor, value.whole);
}

bool reference_equal(enum hvd_dtype dtype, const void *a, const void *b, size_t index)
{
    size_t bytes = (size_t)shapes[dtype].bytes;
    size_t offset = index * bytes;

    if (memcmp((const char *)a + offset, (const char *)b + offset, bytes) == 0) {
        return true;
    }
    return reference_is_float(dtype) && isnan(reference_load(dtype, a, index).real) &&
           isnan(reference_load(dtype, b, index).real);
}
