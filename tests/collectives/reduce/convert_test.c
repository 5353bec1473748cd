/* SPDX-License-Identifier: Apache-2.0 */
/* Compares conversions of float32 arrays to 16-bit floats and back with the conversion of
 * one element. */
#include <math.h>
#include <string.h>

#include "collectives/reduce/half.h"
#include "collectives/reduce/reduce.h"
#include "tests/collectives/reduce/random_bits.h"
#include "tests/tap.h"

enum {
    MOST = 3000, /* most elements of an array: several blocks and a remainder */
    PATTERNS = 65536,
    GUARD = 0xa5a5,
};

static uint16_t narrow_one(enum hvd_dtype dtype, float value)
{
    return dtype == HVD_FLOAT16 ? hvd_float_to_float16(value)
                                : hvd_float_to_bfloat16(value);
}

/* Returns random bits in half of the cases, else a number that is neither tiny nor huge
 * in 16 bits. */
static float random_value(void)
{
    uint32_t bits = (uint32_t)(random_bits() >> 16);

    return (random_bits() >> 16) % 2 == 0
               ? hvd_float_from_bits(bits)
               : ldexpf((float)(bits % 20000) - 10000, (int)(bits >> 28) - 16);
}

/* Multiplies as conversions must: the factor 1 changes no bits, and a product that is NaN
 * is the quiet NaN without sign. */
static float times(double factor, float value)
{
    float product = (float)factor * value;

    return factor == 1.0        ? value
           : product != product ? hvd_float_from_bits(0x7fc00000)
                                : product;
}

static bool narrows(enum hvd_dtype dtype, double factor, size_t count)
{
    static float in[MOST + 1];
    static uint16_t out[MOST + 2];
    float *from = in + (random_bits() >> 16) % 2;

    for (size_t i = 0; i < count; i++) {
        from[i] = random_value();
    }
    out[0] = out[count + 1] = GUARD;
    hvd_narrow(dtype, factor, from, out + 1, count);
    for (size_t i = 0; i < count; i++) {
        uint16_t wanted = narrow_one(dtype, times(factor, from[i]));

        if (out[i + 1] != wanted) {
            tap_note("%g * %a is 0x%04x instead of 0x%04x, element %zu of %zu", factor,
                     (double)from[i], out[i + 1], wanted, i, count);
            return false;
        }
    }
    return out[0] == GUARD && out[count + 1] == GUARD;
}

static void test_narrow(enum hvd_dtype dtype)
{
    static const double factors[] = {1.0, 0.5, 1.0 / 3, -3.0, 1e-30, 1e30};
    static const size_t counts[] = {0, 1, 7, 16, 33, 1023, 1024, 1025, MOST};

    for (size_t k = 0; k < sizeof(factors) / sizeof(factors[0]); k++) {
        bool is_right = true;

        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
            is_right = is_right && narrows(dtype, factors[k], counts[i]);
        }
        tap_ok(is_right, "float32 times %g is rounded once to %s", factors[k],
               hvd_dtype_name(dtype));
    }
}

static void test_edges(void)
{
    const float in[] = {65504.0f, 65519.0f,  65520.0f, -65520.0f, 1.0f + 0x1p-11f,
                        NAN,      -INFINITY, 0x1p-24f, 0x1p-25f,  1.0f + 3 * 0x1p-11f};
    const uint16_t wanted[] = {0x7bff, 0x7bff, 0x7c00, 0xfc00, 0x3c00,
                               0x7e00, 0xfc00, 0x0001, 0x0000, 0x3c02};
    uint16_t out[10];

    hvd_narrow(HVD_FLOAT16, 1.0, in, out, 10);
    tap_ok(memcmp(out, wanted, sizeof(out)) == 0,
           "float16: ties round to even, large values become infinite, NaN stays NaN");
}

static void test_widen(enum hvd_dtype dtype)
{
    static uint16_t in[PATTERNS];
    static float out[PATTERNS];
    bool is_right = true;

    for (uint32_t i = 0; i < PATTERNS; i++) {
        in[i] = (uint16_t)i;
    }
    hvd_widen(dtype, in, out, PATTERNS);
    for (uint32_t i = 0; i < PATTERNS; i++) {
        float wanted = dtype == HVD_FLOAT16 ? hvd_float16_to_float(in[i])
                                            : hvd_bfloat16_to_float(in[i]);

        is_right = is_right && hvd_float_bits(out[i]) == hvd_float_bits(wanted);
    }
    tap_ok(is_right, "every %s converts exactly to float32", hvd_dtype_name(dtype));
}

int main(void)
{
    random_begin();
    test_narrow(HVD_FLOAT16);
    test_narrow(HVD_BFLOAT16);
    test_edges();
    test_widen(HVD_FLOAT16);
    test_widen(HVD_BFLOAT16);
    return tap_done();
}
