/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of reduce and scale: one row per dtype, one table per instruction set.
 * Private to collectives/reduce, its tests and its benchmark. Pure; any thread.
 *
 * Every table gives the same bits. A computed NaN (by an op or a factor) is the quiet NaN
 * without sign and payload, whatever NaN went in; a NaN that was only converted is as
 * half.h promises. */
#ifndef HVD_REDUCE_KERNELS_H
#define HVD_REDUCE_KERNELS_H

#include <stddef.h>

#include "collectives/hvd.h"

/* out[i] = left[i] op right[i]; out may be left or right. */
typedef void hvd_combine_kernel(void *out, const void *left, const void *right,
                                size_t count);

/* out[i] = factor * in[i]; out may be in. */
typedef void hvd_scale_kernel(double factor, const void *in, void *out, size_t count);

/* out[i] = factor * in[i] / divisor, with divisor >= 2: exact and truncated toward zero
 * if factor is 1, else in double; out may be in. */
typedef void hvd_average_kernel(double factor, uint32_t divisor, const void *in,
                                void *out, size_t count);

/* out[i] = factor * (left[i] + right[i]), rounded to a 16-bit float at the end; out may
 * be left or right. */
typedef void hvd_sum_scaled_kernel(double factor, const void *left, const void *right,
                                   void *out, size_t count);

/* Factors of a sum: `before` for each element, `after` for the result. */
struct hvd_sum_factors {
    double before;
    double after;
};

/* out[i] = after * (before * sources[0][i] + before * sources[1][i] + ...), rounded to a
 * 16-bit float at the end. There are at least two sources; out may be one of them. */
typedef void hvd_sum_all_kernel(struct hvd_sum_factors factors,
                                const void *const *sources, int source_count,
                                size_t count, void *out);

typedef void hvd_convert_kernel(const void *in, void *out, size_t count);

struct hvd_kernels {
    /* One kernel for each op. It works on elements of dtype, or on floats if elements
     * must be converted first. NULL: dtype does not have the op. */
    hvd_combine_kernel *combine[HVD_OP_COUNT];
    hvd_scale_kernel *scale; /* scales the same elements; NULL: scaling changes nothing */
    hvd_average_kernel *average; /* integers only; NULL: divide by scaling */
    /* adds elements of dtype, including 16-bit ones; NULL for integers */
    hvd_sum_scaled_kernel *sum_scaled;
    /* adds elements of dtype, including 16-bit ones; NULL for types other than float */
    hvd_sum_all_kernel *sum_all;

    /* The kernels from here on are for 16-bit floats, and NULL for all other types. */
    hvd_combine_kernel *halves[HVD_OP_COUNT]; /* left, right and out are 16-bit */
    /* left and out are float, right is 16-bit */
    hvd_combine_kernel *add_half[HVD_OP_COUNT];
    hvd_scale_kernel *scale_half;
    hvd_convert_kernel *widen; /* converts 16-bit floats to float */
    /* converts 16-bit floats to float and multiplies them by the factor */
    hvd_scale_kernel *widen_scaled;
    hvd_convert_kernel *narrow; /* converts float to 16-bit floats */
};

/* Elements per block, so that intermediate values stay in the L1 cache: two blocks of
 * float or one of double take 8 KiB. */
enum {
    HVD_BLOCK_ELEMENTS = 1024,
};

/* Instruction sets of this architecture. A CPU that has one has all before it. */
enum hvd_kernel_level {
    HVD_LEVEL_PORTABLE, /* plain C, vectorised by the compiler */
#if defined(__x86_64__)
    HVD_LEVEL_AVX2, /* with F16C */
    HVD_LEVEL_AVX512, /* F, BW, DQ, VL */
#elif defined(__aarch64__)
    HVD_LEVEL_NEON,
#endif
    HVD_LEVEL_COUNT,
};

/* Returns the highest level of this CPU. */
enum hvd_kernel_level hvd_kernel_level(void);

const char *hvd_kernel_level_name(enum hvd_kernel_level level);

/* Returns the kernels of a level; NULL if this CPU lacks it. dtype < HVD_DTYPE_COUNT. */
const struct hvd_kernels *hvd_kernels_at(enum hvd_kernel_level level,
                                         enum hvd_dtype dtype);

/* Returns the kernels of the highest level. */
const struct hvd_kernels *hvd_kernels_of(enum hvd_dtype dtype);

#endif
