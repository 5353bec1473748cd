/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the result that a kernel must give for one element. */
#include "tests/collectives/gpu/module/kernel_reference.h"

#include <math.h>
#include <string.h>

/* A type. fraction: number of fraction bits of a float, else 0. least, most: an integer
 * is at least `least` and less than `most`. */
struct type {
    const char *name;
    size_t bytes;
    int fraction;
    double least;
    double most;
    uint64_t most_bits;
};

static const struct type types[HVD_DTYPE_COUNT] = {
    [HVD_UINT8] = {"uint8", 1, 0, 0, 0x1p8, UINT8_MAX},
    [HVD_INT8] = {"int8", 1, 0, -0x1p7, 0x1p7, INT8_MAX},
    [HVD_UINT32] = {"uint32", 4, 0, 0, 0x1p32, UINT32_MAX},
    [HVD_INT32] = {"int32", 4, 0, -0x1p31, 0x1p31, INT32_MAX},
    [HVD_UINT64] = {"uint64", 8, 0, 0, 0x1p64, UINT64_MAX},
    [HVD_INT64] = {"int64", 8, 0, -0x1p63, 0x1p63, INT64_MAX},
    [HVD_FLOAT16] = {"float16", 2, 10, 0, 0, 0},
    [HVD_BFLOAT16] = {"bfloat16", 2, 7, 0, 0, 0},
    [HVD_FLOAT32] = {"float32", 4, 23, 0, 0, 0},
    [HVD_FLOAT64] = {"float64", 8, 52, 0, 0, 0},
};

size_t reference_bytes(enum hvd_dtype dtype)
{
    return types[dtype].bytes;
}

const char *reference_name(enum hvd_dtype dtype)
{
    return types[dtype].name;
}

static int exponent_bits(enum hvd_dtype dtype)
{
    return (int)types[dtype].bytes * 8 - 1 - types[dtype].fraction;
}

static uint64_t sign_bit(enum hvd_dtype dtype)
{
    return (uint64_t)1 << (types[dtype].bytes * 8 - 1);
}

/* Returns the bits of infinity. */
static uint64_t infinite(enum hvd_dtype dtype)
{
    return (((uint64_t)1 << exponent_bits(dtype)) - 1) << types[dtype].fraction;
}

/* Returns the exponent of the smallest subnormal number. */
static int least_exponent(enum hvd_dtype dtype)
{
    return 2 - (1 << (exponent_bits(dtype) - 1)) - types[dtype].fraction;
}

static double float_of(enum hvd_dtype dtype, uint64_t bits)
{
    uint64_t magnitude = bits & (sign_bit(dtype) - 1);
    int fraction = types[dtype].fraction;
    uint64_t part = magnitude & (((uint64_t)1 << fraction) - 1);
    int exponent = (int)(magnitude >> fraction);
    double value;

    if (magnitude >= infinite(dtype)) {
        value = magnitude > infinite(dtype) ? NAN : INFINITY;
    } else if (exponent == 0) {
        value = ldexp((double)part, least_exponent(dtype));
    } else {
        value = ldexp((double)(part + ((uint64_t)1 << fraction)),
                      least_exponent(dtype) + exponent - 1);
    }
    return (bits & sign_bit(dtype)) != 0 ? -value : value;
}

/* Returns the bits of the value in this type. Rounds to nearest even, as the processor
 * does. */
static uint64_t bits_of_float(enum hvd_dtype dtype, double value)
{
    uint64_t sign = signbit(value) ? sign_bit(dtype) : 0, bits;
    int least = least_exponent(dtype), exponent = 0, last;

    if (isnan(value) || isinf(value)) {
        return infinite(dtype) | sign | (isnan(value) ? 1 : 0);
    }
    frexp(value, &exponent);
    last = exponent - 1 - types[dtype].fraction;
    last = last < least || value == 0 ? least : last;
    bits = (uint64_t)nearbyint(ldexp(fabs(value), -last)) +
           ((uint64_t)(last - least) << types[dtype].fraction);
    return sign | (bits < infinite(dtype) ? bits : infinite(dtype));
}

static bool is_signed(enum hvd_dtype dtype)
{
    return types[dtype].least < 0;
}

static double number_of(enum hvd_dtype dtype, uint64_t bits)
{
    int unused = 64 - 8 * (int)types[dtype].bytes;

    if (types[dtype].fraction > 0) {
        return float_of(dtype, bits);
    }
    return is_signed(dtype) ? (double)((int64_t)(bits << unused) / ((int64_t)1 << unused))
                            : (double)bits;
}

static uint64_t bits_of_number(enum hvd_dtype dtype, double number)
{
    const struct type *type = &types[dtype];
    uint64_t mask = UINT64_MAX >> (64 - 8 * type->bytes), bits;

    if (type->fraction > 0) {
        return bits_of_float(dtype, number);
    }
    number = trunc(number);
    if (number >= type->most) {
        return type->most_bits;
    }
    if (!(number > type->least)) {
        number = type->least;
    }
    bits = number < 0 ? (uint64_t)(int64_t)number : (uint64_t)number;
    return bits & mask;
}

static bool is_double(enum hvd_dtype dtype)
{
    return types[dtype].fraction == 0 || dtype == HVD_FLOAT64;
}

bool reference_is_float(enum hvd_dtype dtype)
{
    return types[dtype].fraction > 0;
}

static uint64_t quotient(enum hvd_dtype dtype, uint64_t bits, uint32_t divisor)
{
    int unused = 64 - 8 * (int)types[dtype].bytes;
    int64_t number = (int64_t)(bits << unused) / ((int64_t)1 << unused);

    return is_signed(dtype) ? (uint64_t)(number / (int64_t)divisor) & UINT64_MAX >> unused
                            : bits / divisor;
}

uint64_t reference_move(enum hvd_dtype from, enum hvd_dtype to, double factor,
                        uint32_t divisor, uint64_t bits)
{
    double number = number_of(from, bits);

    if (types[from].fraction == 0 && divisor > 1) {
        return factor == 1.0 ? quotient(from, bits, divisor)
                             : bits_of_number(to, number * factor / (double)divisor);
    }
    number = is_double(from) || is_double(to) ? number * factor
                                              : (float)(number * (double)(float)factor);
    return bits_of_number(to, number);
}

bool reference_are_nan(enum hvd_dtype dtype, uint64_t one, uint64_t other)
{
    uint64_t magnitude = sign_bit(dtype) - 1;

    return types[dtype].fraction > 0 && (one & magnitude) > infinite(dtype) &&
           (other & magnitude) > infinite(dtype);
}

uint64_t reference_special(enum hvd_dtype dtype, unsigned number)
{
    int fraction = types[dtype].fraction;
    uint64_t sign = number % 2 == 0 ? 0 : sign_bit(dtype);
    uint64_t normal = (uint64_t)1 << fraction;
    const uint64_t floats[] = {0,
                               1,
                               normal - 1,
                               normal,
                               infinite(dtype) / 2 & ~(normal - 1),
                               infinite(dtype) - 1,
                               infinite(dtype),
                               infinite(dtype) + 1,
                               infinite(dtype) + normal / 2};
    const uint64_t integers[] = {0,         1, 2, sign_bit(dtype) - 1, sign_bit(dtype),
                                 UINT64_MAX};

    return fraction > 0 ? sign | floats[number / 2 % 9] : integers[number % 6];
}

/* Makes a float of medium size. Its fraction has some upper bits, one more bit, and often
 * the last bit. Shifts an integer right by a random number of bits. */
uint64_t reference_small(enum hvd_dtype dtype, uint64_t bits)
{
    int fraction = types[dtype].fraction;
    uint64_t some = (bits >> 8) & 0x7f, exponent = (bits >> 16) % 64;
    uint64_t middle = infinite(dtype) / 2 >> fraction;
    uint64_t made;

    if (fraction == 0) {
        return bits >> (bits % (8 * types[dtype].bytes));
    }
    exponent = middle > 31 ? middle + exponent - 32 : exponent % 31;
    made = (exponent << fraction) | some << (fraction - 7);
    made |= (uint64_t)1 << ((bits >> 24) % (unsigned)fraction);
    made |= (bits >> 32) % 2;
    return (bits >> 33) % 2 == 0 ? made : made | sign_bit(dtype);
}
