/* SPDX-License-Identifier: Apache-2.0 */
/* Test data that every rank can compute for every other rank, and elements of any dtype
 * as doubles. */
#include "tests/collectives/rank_values.h"

#include <math.h>
#include <string.h>

uint32_t value_random(uint32_t seed, int rank, int64_t index)
{
    uint64_t x = ((uint64_t)seed << 32) ^ ((uint64_t)(rank + 1) << 52) ^ (uint64_t)index;

    /* splitmix64 */
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)(x >> 32);
}

static int is_unsigned(enum hvd_dtype dtype)
{
    return dtype == HVD_UINT8 || dtype == HVD_UINT16 || dtype == HVD_UINT32 ||
           dtype == HVD_UINT64;
}

double value_of(uint32_t seed, int rank, int64_t index, enum hvd_dtype dtype,
                enum hvd_op op)
{
    uint32_t random = value_random(seed, rank, index);

    if (dtype == HVD_BOOL) {
        return random % 2;
    }
    if (op == HVD_PRODUCT) {
        return is_unsigned(dtype) || random % 3 != 0 ? (double)(1 + random % 2) : -1.0;
    }
    return is_unsigned(dtype) ? random % 17 : (double)(random % 17) - 8;
}

/* Decodes the sign, exponent and fraction of a 16-bit float with this many exponent
 * bits. */
static double load_small_float(uint16_t bits, int exponent_bits)
{
    int fraction_bits = 15 - exponent_bits;
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
    int fraction = bits & ((1 << fraction_bits) - 1);
    double value;

    if (exponent == (1 << exponent_bits) - 1) {
        value = fraction != 0 ? NAN : INFINITY;
    } else if (exponent == 0) {
        value = ldexp(fraction, 1 - bias - fraction_bits);
    } else {
        value = ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
    }
    return (bits & 0x8000) != 0 ? -value : value;
}

/* Encodes a 16-bit float; exact for the whole numbers of value_of. */
static uint16_t store_small_float(double value, int exponent_bits)
{
    int fraction_bits = 15 - exponent_bits;
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent;
    double fraction;

    if (value == 0) {
        return 0;
    }
    fraction = frexp(fabs(value), &exponent); /* 0.5 <= fraction < 1 */
    return (uint16_t)((value < 0 ? 0x8000 : 0) |
                      ((exponent - 1 + bias) << fraction_bits) |
                      (int)ldexp(fraction * 2 - 1, fraction_bits));
}

static void store_wide(enum hvd_dtype dtype, char *at, double value)
{
    float single = (float)value;
    int64_t whole = (int64_t)value;

    if (dtype == HVD_FLOAT32) {
        memcpy(at, &single, sizeof(single));
    } else if (dtype == HVD_FLOAT64) {
        memcpy(at, &value, sizeof(value));
    } else {
        memcpy(at, &whole, hvd_dtype_bytes(dtype)); /* the machine is little-endian */
    }
}

void value_store(enum hvd_dtype dtype, void *array, int64_t index, double value)
{
    char *at = (char *)array + index * (int64_t)hvd_dtype_bytes(dtype);
    uint16_t bits;

    if (dtype == HVD_FLOAT16 || dtype == HVD_BFLOAT16) {
        bits = store_small_float(value, dtype == HVD_FLOAT16 ? 5 : 8);
        memcpy(at, &bits, sizeof(bits));
    } else {
        store_wide(dtype, at, value);
    }
}

static double load_integer(enum hvd_dtype dtype, const char *at)
{
    size_t bytes = hvd_dtype_bytes(dtype);
    uint64_t raw = 0;

    memcpy(&raw, at, bytes);
    if (dtype == HVD_UINT64) {
        return (double)raw;
    }
    if (!is_unsigned(dtype) && dtype != HVD_BOOL && bytes < 8 &&
        (raw >> (8 * bytes - 1)) != 0) {
        raw |= UINT64_MAX << (8 * bytes);
    }
    return (double)(int64_t)raw;
}

double value_load(enum hvd_dtype dtype, const void *array, int64_t index)
{
    const char *at = (const char *)array + index * (int64_t)hvd_dtype_bytes(dtype);
    uint16_t bits;
    float single;
    double wide;

    switch (dtype) {
    case HVD_FLOAT16:
    case HVD_BFLOAT16:
        memcpy(&bits, at, sizeof(bits));
        return load_small_float(bits, dtype == HVD_FLOAT16 ? 5 : 8);
    case HVD_FLOAT32:
        memcpy(&single, at, sizeof(single));
        return single;
    case HVD_FLOAT64:
        memcpy(&wide, at, sizeof(wide));
        return wide;
    default:
        return load_integer(dtype, at);
    }
}

double value_wrap(enum hvd_dtype dtype, double value)
{
    char element[8];

    if (value_is_float(dtype)) {
        return value;
    }
    if (dtype == HVD_BOOL) {
        return value != 0;
    }
    store_wide(dtype, element, value);
    return load_integer(dtype, element);
}

int value_is_float(enum hvd_dtype dtype)
{
    return dtype == HVD_FLOAT16 || dtype == HVD_BFLOAT16 || dtype == HVD_FLOAT32 ||
           dtype == HVD_FLOAT64;
}

double value_epsilon(enum hvd_dtype dtype)
{
    switch (dtype) {
    case HVD_FLOAT16:
        return ldexp(1, -11);
    case HVD_BFLOAT16:
        return ldexp(1, -8);
    case HVD_FLOAT32:
        return ldexp(1, -24);
    default:
        return ldexp(1, -53);
    }
}

static int is_signed(enum hvd_dtype dtype)
{
    return dtype == HVD_INT8 || dtype == HVD_INT16 || dtype == HVD_INT32 ||
           dtype == HVD_INT64;
}

uint64_t value_of_bits(enum hvd_dtype dtype, uint64_t bits)
{
    size_t width = 8 * hvd_dtype_bytes(dtype);
    uint64_t above = width < 64 ? UINT64_MAX << width : 0;
    int is_negative = is_signed(dtype) && (bits >> (width - 1) & 1) != 0;

    return is_negative ? bits | above : bits & ~above;
}

uint64_t value_quotient(enum hvd_dtype dtype, uint64_t sum, uint32_t divisor)
{
    uint64_t value = value_of_bits(dtype, sum);

    return is_signed(dtype) ? (uint64_t)((int64_t)value / (int64_t)divisor)
                            : value / divisor;
}
