/* SPDX-License-Identifier: Apache-2.0 */
/* Compares 16-bit float conversions with plain arithmetic, for all 65536 patterns and for
 * the floats at and next to every point where the rounding changes. */
#include <math.h>

#include "collectives/reduce/half.h"
#include "tests/tap.h"

struct format {
    const char *name;
    int fraction_bits;
    int exponent_bits;
    float (*widen)(uint16_t);
    uint16_t (*narrow)(float);
};

static const struct format formats[] = {
    {"float16", 10, 5, hvd_float16_to_float, hvd_float_to_float16},
    {"bfloat16", 7, 8, hvd_bfloat16_to_float, hvd_float_to_bfloat16},
};

static uint16_t infinity_of(const struct format *format)
{
    return (uint16_t)(((1u << format->exponent_bits) - 1) << format->fraction_bits);
}

/* Returns the value of a finite pattern without sign. For the pattern of infinity,
 * returns the value that it would have if its exponent meant a number, too. */
static double value_of(const struct format *format, uint16_t magnitude)
{
    int fraction = magnitude & ((1 << format->fraction_bits) - 1);
    int exponent = magnitude >> format->fraction_bits;
    int bias = (1 << (format->exponent_bits - 1)) - 1;
    int hidden = exponent == 0 ? 0 : 1 << format->fraction_bits;
    int scale = (exponent == 0 ? 1 : exponent) - bias - format->fraction_bits;

    return ldexp(hidden + fraction, scale);
}

static bool widens_every_pattern(const struct format *format)
{
    uint16_t infinity = infinity_of(format);

    for (uint32_t pattern = 0; pattern <= UINT16_MAX; pattern++) {
        uint16_t magnitude = pattern & 0x7fff;
        float value = format->widen((uint16_t)pattern);
        bool is_negative = pattern >= 0x8000;
        bool is_right;

        if (magnitude > infinity) {
            is_right = isnan(value);
        } else if (magnitude == infinity) {
            is_right = isinf(value);
        } else {
            is_right = fabs((double)value) == value_of(format, magnitude);
        }
        if (!is_right || (signbit(value) != 0) != is_negative) {
            tap_note("%s 0x%04x widened to %a", format->name, pattern, (double)value);
            return false;
        }
    }
    return true;
}

static bool returns_every_pattern(const struct format *format)
{
    uint16_t infinity = infinity_of(format);
    uint16_t quiet = (uint16_t)(1u << (format->fraction_bits - 1));

    for (uint32_t pattern = 0; pattern <= UINT16_MAX; pattern++) {
        bool is_nan = (pattern & 0x7fff) > infinity;
        uint16_t expected = (uint16_t)(is_nan ? pattern | quiet : pattern);
        uint16_t found = format->narrow(format->widen((uint16_t)pattern));

        if (found != expected) {
            tap_note("%s 0x%04x came back as 0x%04x", format->name, pattern, found);
            return false;
        }
    }
    return true;
}

static bool narrows_to(const struct format *format, float value, uint16_t expected)
{
    uint16_t found = format->narrow(value);
    uint16_t mirrored = format->narrow(-value);

    if (found != expected || mirrored != (expected | 0x8000)) {
        tap_note("%s of %a: expected 0x%04x, found 0x%04x, and 0x%04x of its negative",
                 format->name, (double)value, expected, found, mirrored);
        return false;
    }
    return true;
}

/* Whether the middle between two neighbouring 16-bit values is rounded to the even one,
 * and the floats next to the middle to the nearer one. */
static bool rounds_to_nearest_even(const struct format *format)
{
    uint16_t infinity = infinity_of(format);

    for (uint16_t low = 0; low < infinity; low++) {
        uint16_t high = (uint16_t)(low + 1);
        float middle = (float)((value_of(format, low) + value_of(format, high)) / 2);
        uint16_t even = low % 2 == 0 ? low : high;

        if (!narrows_to(format, middle, even) ||
            !narrows_to(format, nextafterf(middle, 0), low) ||
            !narrows_to(format, nextafterf(middle, INFINITY), high)) {
            return false;
        }
    }
    return narrows_to(format, INFINITY, infinity);
}

static bool keeps_nan_with_low_payload(const struct format *format)
{
    uint16_t found = format->narrow(hvd_float_from_bits(0x7f800001));

    return (found & 0x7fff) > infinity_of(format);
}

int main(void)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        const struct format *format = &formats[i];

        tap_ok(widens_every_pattern(format), "%s converts exactly to float",
               format->name);
        tap_ok(returns_every_pattern(format),
               "%s is the same after conversion to float and back", format->name);
        tap_ok(rounds_to_nearest_even(format), "%s rounds to nearest, ties to even",
               format->name);
        tap_ok(keeps_nan_with_low_payload(format), "%s does not turn NaN into infinity",
               format->name);
    }
    return tap_done();
}
