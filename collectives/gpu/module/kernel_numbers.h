/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between the bits of an element and a number, for the kernels: 16-bit floats
 * and float32 become float, all other types double. The results have the same bits as
 * those of hvd_reduce on the host. */
#ifndef HVD_KERNEL_NUMBERS_H
#define HVD_KERNEL_NUMBERS_H

#include "collectives/gpu/module/kernel_memory.h"
#include "collectives/reduce/half.h"

/* GPUs convert float16 in one instruction. It rounds as half.h does, also to and from
 * subnormals, but NaN may lose its sign and payload: select those bits apart. */
#ifdef __CUDACC__
HVD_KERNEL_FUNCTION float hvd_number_float16(uint64_t bits)
{
    uint32_t half = (uint32_t)bits & 0xffff;
    uint32_t nan = (half & 0x8000) << 16 | 0x7fc00000 | (half & 0x3ff) << 13;
    float number;

    asm("cvt.f32.f16 %0, %1;" : "=f"(number) : "h"((uint16_t)bits));
    return (half & 0x7fff) > 0x7c00 ? hvd_float_from_bits(nan) : number;
}

HVD_KERNEL_FUNCTION uint64_t hvd_bits_float16(float number)
{
    uint32_t bits = hvd_float_bits(number);
    uint32_t nan = (bits >> 16 & 0x8000) | 0x7e00 | (bits >> 13 & 0x3ff);
    uint16_t half;

    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(number));
    return (bits & 0x7fffffff) > 0x7f800000 ? nan : half;
}
#else
HVD_KERNEL_FUNCTION float hvd_number_float16(uint64_t bits)
{
    return hvd_float16_to_float((uint16_t)bits);
}

HVD_KERNEL_FUNCTION uint64_t hvd_bits_float16(float number)
{
    return hvd_float_to_float16(number);
}
#endif

HVD_KERNEL_FUNCTION float hvd_number_bfloat16(uint64_t bits)
{
    return hvd_bfloat16_to_float((uint16_t)bits);
}

HVD_KERNEL_FUNCTION uint64_t hvd_bits_bfloat16(float number)
{
    return hvd_float_to_bfloat16(number);
}

HVD_KERNEL_FUNCTION float hvd_number_float32(uint64_t bits)
{
    return hvd_float_from_bits((uint32_t)bits);
}

HVD_KERNEL_FUNCTION uint64_t hvd_bits_float32(float number)
{
    return hvd_float_bits(number);
}

HVD_KERNEL_FUNCTION double hvd_number_float64(uint64_t bits)
{
    double number;

    memcpy(&number, &bits, sizeof(number));
    return number;
}

HVD_KERNEL_FUNCTION uint64_t hvd_bits_float64(double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof(bits));
    return bits;
}

/* Converts to an integer: truncates toward zero and saturates; NaN becomes LEAST. FIT is
 * the greatest double that converts to TYPE. */
#define HVD_KERNEL_INTEGER(NAME, TYPE, LEAST, MOST, FIT)                                 \
    HVD_KERNEL_FUNCTION double hvd_number_##NAME(uint64_t bits)                          \
    {                                                                                    \
        return (double)(TYPE)bits;                                                       \
    }                                                                                    \
    HVD_KERNEL_FUNCTION uint64_t hvd_bits_##NAME(double number)                          \
    {                                                                                    \
        if (number > (FIT)) {                                                            \
            return (uint64_t)(MOST);                                                     \
        }                                                                                \
        return number > (double)(LEAST) ? (uint64_t)(TYPE)number : (uint64_t)(LEAST);    \
    }

HVD_KERNEL_INTEGER(uint8, uint8_t, 0, 0xff, 255.0)
HVD_KERNEL_INTEGER(int8, int8_t, -0x80, 0x7f, 127.0)
HVD_KERNEL_INTEGER(uint32, uint32_t, 0, 0xffffffffu, 4294967295.0)
HVD_KERNEL_INTEGER(int32, int32_t, -0x7fffffff - 1, 0x7fffffff, 2147483647.0)
HVD_KERNEL_INTEGER(uint64, uint64_t, 0, 0xffffffffffffffffu, 18446744073709549568.0)
HVD_KERNEL_INTEGER(int64, int64_t, -0x7fffffffffffffff - 1, 0x7fffffffffffffff,
                   9223372036854774784.0)

#endif
