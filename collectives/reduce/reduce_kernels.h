/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of reduce and scale, one row per dtype and one table per instruction set.
 * Private to collectives/reduce, its tests and its benchmark. Pure; any thread.
 *
 * Every table gives the same bits. A NaN that was computed (by an op or a factor) is the quiet
 * NaN without sign and payload, whatever NaN went in; one that was only converted keeps what
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

/* out[i] = factor * in[i] / divisor, which is 2 at least: exact and truncated toward zero when
 * factor is 1, else in double; out may be in. */
typedef void hvd_average_kernel(double factor, uint32_t divisor, const void *in,
                                void *out, size_t count);

/* out[i] = factor * (left[i] + right[i]), rounded to a 16-bit float at the end; out may be left
 * or right. */
typedef void hvd_sum_scaled_kernel(double factor, const void *left, const void *right,
                                   void *out, size_t count);

/* What the elements are multiplied by, and their sum. */
struct hvd_sum_factors {
    double before;
    double after;
};

/* out[i] = after * (before * sources[0][i] + before * sources[1][i] + ...), rounded to a 16-bit
 * float at the end; out may be one of the sources, of which there are two or more. */
typedef void hvd_sum_all_kernel(struct hvd_sum_factors factors,
                                const void *const *sources, int source_count,
                                size_t count, void *out);

typedef void hvd_convert_kernel(const void *in, void *out, size_t count);

struct hvd_kernels {
    /* On elements; on float where elements have to be widened first. NULL: no such op. */
    hvd_combine_kernel *combine[HVD_OP_COUNT];
    hvd_scale_kernel *scale; /* likewise; NULL: scaling changes nothing */
    hvd_average_kernel *average; /* of integers; NULL: dividing is scaling */
    hvd_sum_scaled_kernel *sum_scaled; /* on elements, also 16-bit ones; NULL: integers */
    hvd_sum_all_kernel *sum_all; /* on elements, also 16-bit ones; NULL: not of float */

    /* The rest is NULL where elements are their own partials. */
    hvd_combine_kernel *halves[HVD_OP_COUNT]; /* left, right and out are 16-bit */
    hvd_combine_kernel
        *add_half[HVD_OP_COUNT]; /* left and out are float, right is 16-bit */
    hvd_scale_kernel *scale_half;
    hvd_convert_kernel *widen; /* to float */
    hvd_scale_kernel *widen_scaled; /* to float, times the factor */
    hvd_convert_kernel *narrow; /* from float */
};

/* Elements that are worked on at a time, so that intermediate values stay in the L1 cache:
 * two blocks of float or one of double take 8 KiB. */
enum {
    HVD_BLOCK_ELEMENTS = 1024,
};

/* Those of this architecture. A CPU that has one has those before it. */
enum hvd_kernel_level {
    HVD_LEVEL_PORTABLE, /* what the compiler makes of plain C */
#if defined(__x86_64__)
    HVD_LEVEL_AVX2, /* and F16C */
    HVD_LEVEL_AVX512, /* F, BW, DQ, VL */
#elif defined(__aarch64__)
    HVD_LEVEL_NEON,
#endif
    HVD_LEVEL_COUNT,
};

/* The highest that this CPU has. */
enum hvd_kernel_level hvd_kernel_level(void);

const char *hvd_kernel_level_name(enum hvd_kernel_level level);

/* NULL if this CPU does not have the level. dtype < HVD_DTYPE_COUNT. */
const struct hvd_kernels *hvd_kernels_at(enum hvd_kernel_level level,
                                         enum hvd_dtype dtype);

/* At the highest level. */
const struct hvd_kernels *hvd_kernels_of(enum hvd_dtype dtype);

#endif
