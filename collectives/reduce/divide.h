/* SPDX-License-Identifier: Apache-2.0 */
/* Exact division of many integers by one divisor, by multiplication: CPUs have no vector
 * division of integers. After Granlund and Montgomery, "Division by Invariant Integers
 * using Multiplication", 1994, figure 4.1: with 2^(l-1) < d <= 2^l and m = floor(2^N *
 * (2^l - d) / d) + 1,
 *   t = the upper half of m * n,   n / d = (t + (n - t) / 2) / 2^(l-1)
 * for every n of N bits. */
#ifndef HVD_DIVIDE_H
#define HVD_DIVIDE_H

#include <stdint.h>

struct hvd_divisor {
    uint32_t multiplier32; /* m for N = 32 */
    uint64_t multiplier64;
    unsigned shift; /* l - 1 */
};

/* Computes the constants for a divisor, 2 <= by < 2^31. */
static inline struct hvd_divisor hvd_divisor_of(uint32_t by)
{
    struct hvd_divisor divisor = {.shift = 0};
    uint64_t rest, upper;

    while (UINT64_C(2) << divisor.shift < by) {
        divisor.shift++;
    }
    /* `rest` is less than `by`, and so are all later remainders */
    rest = (UINT64_C(2) << divisor.shift) - by;
    upper = (rest << 32) / by;
    rest = (rest << 32) % by;
    divisor.multiplier32 = (uint32_t)upper + 1;
    divisor.multiplier64 = (upper << 32) + (rest << 32) / by + 1;
    return divisor;
}

static inline uint32_t hvd_upper_half_uint32_t(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b >> 32);
}

/* Computes the upper half from four products of 32-bit halves, because vector units
 * multiply 32-bit numbers. */
static inline uint64_t hvd_upper_half_uint64_t(uint64_t a, uint64_t b)
{
    const uint64_t half = UINT32_MAX;
    uint64_t low = (a & half) * (b & half);
    uint64_t middle = (a >> 32) * (b & half) + (low >> 32);
    uint64_t other = (a & half) * (b >> 32) + (middle & half);

    return (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
}

#define HVD_QUOTIENT(WIDE, BITS)                                                         \
    static inline WIDE hvd_quotient_##WIDE(WIDE value, const struct hvd_divisor *by)     \
    {                                                                                    \
        WIDE upper = hvd_upper_half_##WIDE(by->multiplier##BITS, value);                 \
                                                                                         \
        return (upper + ((value - upper) >> 1)) >> by->shift;                            \
    }

HVD_QUOTIENT(uint32_t, 32)
HVD_QUOTIENT(uint64_t, 64)

#endif
