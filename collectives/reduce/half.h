/* SPDX-License-Identifier: Apache-2.0 */
/* 16-bit floats to float and back, as bit arithmetic without branches, which compilers
 * turn into vector code. Rounds to nearest, ties to even; correct for subnormals and
 * infinities, also on a thread that flushes subnormal floats to zero. NaN stays NaN with
 * its sign and the upper payload, made quiet as the conversion instructions do; only
 * bfloat16 to float changes no bit. */
#ifndef HVD_HALF_H
#define HVD_HALF_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__ /* for the kernels of gpu/module */
#define HVD_HALF_FUNCTION static __device__ inline
#else
#define HVD_HALF_FUNCTION static inline
#endif

HVD_HALF_FUNCTION uint32_t hvd_float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

HVD_HALF_FUNCTION float hvd_float_from_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Returns value < limit ? yes : no, for value and limit below 2^31. It uses a mask: with
 * a conditional, gcc moves the float sums below into its branches and then does not
 * vectorise. */
HVD_HALF_FUNCTION uint32_t hvd_bits_if_below(uint32_t value, uint32_t limit, uint32_t yes,
                                             uint32_t no)
{
    uint32_t mask = 0 - ((value - limit) >> 31);

    return (yes & mask) | (no & ~mask);
}

HVD_HALF_FUNCTION float hvd_bfloat16_to_float(uint16_t half)
{
    return hvd_float_from_bits((uint32_t)half << 16);
}

HVD_HALF_FUNCTION uint16_t hvd_float_to_bfloat16(float value)
{
    uint32_t bits = hvd_float_bits(value);
    uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    uint32_t quiet = (bits >> 16) | 0x40;
    uint32_t magnitude = bits & 0x7fffffff;

    return (uint16_t)(magnitude > 0x7f800000 ? quiet : rounded);
}

HVD_HALF_FUNCTION float hvd_float16_to_float(uint16_t half)
{
    const uint32_t rebias = (127 - 15) << 23;
    const uint32_t least_normal = (127 - 14) << 23; /* 2^-14 */
    const uint32_t infinity = 31u << 23;
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t magnitude = (uint32_t)(half & 0x7fff) << 13;
    uint32_t normal = magnitude + rebias;
    uint32_t quiet = ((infinity - magnitude) >> 31) << 22;
    uint32_t special = (normal + rebias) | quiet;
    /* 2^-14 * (1 + fraction) - 2^-14: none of these floats is subnormal. */
    uint32_t subnormal = hvd_float_bits(hvd_float_from_bits(magnitude + least_normal) -
                                        hvd_float_from_bits(least_normal));
    uint32_t small = hvd_bits_if_below(magnitude, 1u << 23, subnormal, normal);
    uint32_t bits = hvd_bits_if_below(magnitude, infinity, small, special);

    return hvd_float_from_bits(bits | sign);
}

HVD_HALF_FUNCTION uint16_t hvd_float_to_float16(float value)
{
    const uint32_t infinity = 0x7c00;
    uint32_t bits = hvd_float_bits(value);
    uint32_t sign = (bits >> 16) & 0x8000;
    uint32_t magnitude = bits & 0x7fffffff;
    uint32_t rebias = (uint32_t)(127 - 15) << 23;
    uint32_t normal = (magnitude - rebias + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    /* 0.5 + x has the same unit in the last place as a subnormal float16: 2^-24. */
    uint32_t subnormal =
        hvd_float_bits(hvd_float_from_bits(magnitude) + 0.5f) - hvd_float_bits(0.5f);
    uint32_t quiet = infinity | 0x200 | ((magnitude >> 13) & 0x3ff);
    uint32_t small = hvd_bits_if_below(magnitude, (127u - 14) << 23, subnormal, normal);
    uint32_t large = magnitude > 0x7f800000 ? quiet : infinity;
    uint32_t half = hvd_bits_if_below(magnitude, (127u + 16) << 23, small, large);

    return (uint16_t)(half | sign);
}

#endif
