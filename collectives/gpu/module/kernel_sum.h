/* SPDX-License-Identifier: Apache-2.0 */
/* The reduction kernels, one thread's part: hvd_kernel_sum_NAME(sum, block, thread) for
 * each of HVD_KERNEL_SUM_LIST. Compiled by nvcc for GPUs, and as C for the stand-in for a
 * GPU in the tests.
 *
 * The results have the same bits as those of hvd_reduce on the host
 * (collectives/reduce/reduce.h) for the same sources in the same order: integers wrap;
 * 16-bit floats are added up in float and rounded once; MIN and MAX return NaN if any
 * source is NaN, and treat -0 as less than +0; a computed NaN has no sign and no payload.
 */
#ifndef HVD_KERNEL_SUM_H
#define HVD_KERNEL_SUM_H

#include "collectives/gpu/module/kernel_numbers.h"
#include "collectives/gpu/module/kernel_work.h"

/* --- two numbers --- */

#define HVD_KERNEL_COMBINE_INTEGER(NAME, TYPE, WIDE)                                     \
    HVD_KERNEL_FUNCTION TYPE hvd_combine_##NAME(int32_t op, TYPE a, TYPE b)              \
    {                                                                                    \
        switch (op) {                                                                    \
        case HVD_KERNEL_PLUS:                                                            \
            return (TYPE)((WIDE)a + (WIDE)b);                                            \
        case HVD_KERNEL_TIMES:                                                           \
            return (TYPE)((WIDE)a * (WIDE)b);                                            \
        case HVD_KERNEL_LESSER:                                                          \
            return a < b ? a : b;                                                        \
        default:                                                                         \
            return a > b ? a : b;                                                        \
        }                                                                                \
    }

HVD_KERNEL_COMBINE_INTEGER(uint8, uint8_t, uint32_t)
HVD_KERNEL_COMBINE_INTEGER(int8, int8_t, uint32_t)
HVD_KERNEL_COMBINE_INTEGER(uint32, uint32_t, uint32_t)
HVD_KERNEL_COMBINE_INTEGER(int32, int32_t, uint32_t)
HVD_KERNEL_COMBINE_INTEGER(uint64, uint64_t, uint64_t)
HVD_KERNEL_COMBINE_INTEGER(int64, int64_t, uint64_t)

/* Equal values have the same bits, except zeros of different signs: `or` of their bits
 * gives -0 for the minimum, `and` gives +0 for the maximum. */
#define HVD_KERNEL_COMBINE_FLOAT(NAME, TYPE, PLAIN_NAN)                                  \
    HVD_KERNEL_FUNCTION TYPE hvd_choose_##NAME(bool is_a, TYPE a, TYPE b,                \
                                               uint64_t equal)                           \
    {                                                                                    \
        return a == b ? hvd_number_##NAME(equal) : is_a || a != a ? a : b;               \
    }                                                                                    \
    HVD_KERNEL_FUNCTION TYPE hvd_combine_##NAME(int32_t op, TYPE a, TYPE b)              \
    {                                                                                    \
        uint64_t one = hvd_bits_##NAME(a), other = hvd_bits_##NAME(b);                   \
        TYPE value;                                                                      \
                                                                                         \
        switch (op) {                                                                    \
        case HVD_KERNEL_PLUS:                                                            \
            value = a + b;                                                               \
            break;                                                                       \
        case HVD_KERNEL_TIMES:                                                           \
            value = a * b;                                                               \
            break;                                                                       \
        case HVD_KERNEL_LESSER:                                                          \
            value = hvd_choose_##NAME(a < b, a, b, one | other);                         \
            break;                                                                       \
        default:                                                                         \
            value = hvd_choose_##NAME(a > b, a, b, one & other);                         \
        }                                                                                \
        return value == value ? value : hvd_number_##NAME(PLAIN_NAN);                    \
    }

HVD_KERNEL_COMBINE_FLOAT(float32, float, 0x7fc00000u)
HVD_KERNEL_COMBINE_FLOAT(float64, double, 0x7ff8000000000000u)

/* --- elements of all sources --- */

HVD_KERNEL_FUNCTION const char *hvd_kernel_source(const struct hvd_kernel_sum *sum,
                                                  int32_t source, int64_t at)
{
    int32_t other = source < sum->self ? source : source - 1;

    return (source == sum->self ? sum->own : sum->others + other * sum->stride) + at;
}

HVD_KERNEL_FUNCTION bool hvd_kernel_sum_is_aligned(const struct hvd_kernel_sum *sum)
{
    uintptr_t all = (uintptr_t)sum->own | (uintptr_t)sum->others | (uintptr_t)sum->to |
                    (uintptr_t)sum->stride;

    return (all & (HVD_KERNEL_VECTOR - 1)) == 0;
}

/* BITS: an unsigned integer as wide as an element. NUMBER: the type of the computation.
 * COMBINE: the operation on two numbers. LOAD, STORE: convert bits to NUMBER and back. */
#define HVD_KERNEL_SUMMER(NAME, BITS, NUMBER, COMBINE, LOAD, STORE)                      \
    HVD_KERNEL_FUNCTION void hvd_sum_vector_##NAME(const struct hvd_kernel_sum *sum,     \
                                                   int64_t at)                           \
    {                                                                                    \
        enum {                                                                           \
            GROUP = HVD_KERNEL_VECTOR / sizeof(BITS)                                     \
        };                                                                               \
        union {                                                                          \
            hvd_vector vector;                                                           \
            BITS bits[GROUP];                                                            \
        } some;                                                                          \
        NUMBER totals[GROUP];                                                            \
                                                                                         \
        some.vector = hvd_load_vector(hvd_kernel_source(sum, 0, at));                    \
        HVD_KERNEL_UNROLL                                                                \
        for (int i = 0; i < GROUP; i++) {                                                \
            totals[i] = LOAD(some.bits[i]);                                              \
        }                                                                                \
        for (int32_t source = 1; source < sum->sources; source++) {                      \
            some.vector = hvd_load_vector(hvd_kernel_source(sum, source, at));           \
            HVD_KERNEL_UNROLL                                                            \
            for (int i = 0; i < GROUP; i++) {                                            \
                totals[i] = COMBINE(sum->op, totals[i], LOAD(some.bits[i]));             \
            }                                                                            \
        }                                                                                \
        HVD_KERNEL_UNROLL                                                                \
        for (int i = 0; i < GROUP; i++) {                                                \
            some.bits[i] = (BITS)STORE(totals[i]);                                       \
        }                                                                                \
        hvd_store_vector(sum->to + at, some.vector);                                     \
    }                                                                                    \
    HVD_KERNEL_FUNCTION void hvd_sum_element_##NAME(const struct hvd_kernel_sum *sum,    \
                                                    int64_t at)                          \
    {                                                                                    \
        NUMBER total =                                                                   \
            LOAD((BITS)hvd_load_bits(hvd_kernel_source(sum, 0, at), sizeof(BITS)));      \
                                                                                         \
        for (int32_t source = 1; source < sum->sources; source++) {                      \
            total = COMBINE(sum->op, total,                                              \
                            LOAD((BITS)hvd_load_bits(hvd_kernel_source(sum, source, at), \
                                                     sizeof(BITS))));                    \
        }                                                                                \
        hvd_store_bits(sum->to + at, sizeof(BITS), (BITS)STORE(total));                  \
    }                                                                                    \
    HVD_KERNEL_FUNCTION void hvd_kernel_sum_##NAME(const struct hvd_kernel_sum *sum,     \
                                                   uint32_t block, uint32_t thread)      \
    {                                                                                    \
        const int64_t first = (int64_t)block * HVD_KERNEL_SUM_TILE;                      \
        const int64_t left = sum->count - first;                                         \
        const uint32_t count =                                                           \
            left < HVD_KERNEL_SUM_TILE ? (uint32_t)left : HVD_KERNEL_SUM_TILE;           \
        const uint32_t group = HVD_KERNEL_VECTOR / sizeof(BITS);                         \
        uint32_t groups = hvd_kernel_sum_is_aligned(sum) ? count / group : 0;            \
                                                                                         \
        for (uint32_t at = thread; at < groups; at += HVD_KERNEL_THREADS) {              \
            hvd_sum_vector_##NAME(sum, (first + at * group) * (int64_t)sizeof(BITS));    \
        }                                                                                \
        for (uint32_t at = groups * group + thread; at < count;                          \
             at += HVD_KERNEL_THREADS) {                                                 \
            hvd_sum_element_##NAME(sum, (first + at) * (int64_t)sizeof(BITS));           \
        }                                                                                \
    }

HVD_KERNEL_SUMMER(uint8, uint8_t, uint8_t, hvd_combine_uint8, (uint8_t), (uint8_t))
HVD_KERNEL_SUMMER(int8, uint8_t, int8_t, hvd_combine_int8, (int8_t), (uint8_t))
HVD_KERNEL_SUMMER(uint32, uint32_t, uint32_t, hvd_combine_uint32, (uint32_t), (uint32_t))
HVD_KERNEL_SUMMER(int32, uint32_t, int32_t, hvd_combine_int32, (int32_t), (uint32_t))
HVD_KERNEL_SUMMER(uint64, uint64_t, uint64_t, hvd_combine_uint64, (uint64_t), (uint64_t))
HVD_KERNEL_SUMMER(int64, uint64_t, int64_t, hvd_combine_int64, (int64_t), (uint64_t))
HVD_KERNEL_SUMMER(float16, uint16_t, float, hvd_combine_float32, hvd_number_float16,
                  hvd_bits_float16)
HVD_KERNEL_SUMMER(bfloat16, uint16_t, float, hvd_combine_float32, hvd_number_bfloat16,
                  hvd_bits_bfloat16)
HVD_KERNEL_SUMMER(float32, uint32_t, float, hvd_combine_float32, hvd_number_float32,
                  hvd_bits_float32)
HVD_KERNEL_SUMMER(float64, uint64_t, double, hvd_combine_float64, hvd_number_float64,
                  hvd_bits_float64)

#endif
