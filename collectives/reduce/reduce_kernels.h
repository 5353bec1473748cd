/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of reduce and scale, one row per dtype. Private to collectives/reduce*.c and
 * scale.c. Code for another instruction set would be another table of the same shape. */
#ifndef HVD_REDUCE_KERNELS_H
#define HVD_REDUCE_KERNELS_H

#include <stddef.h>

#include "collectives/hvd.h"

/* out[i] = left[i] op right[i]; out may be left or right. */
typedef void hvd_combine_kernel(void *out, const void *left, const void *right,
                                size_t count);

/* out[i] = factor * in[i]; out may be in. */
typedef void hvd_scale_kernel(double factor, const void *in, void *out, size_t count);

typedef void hvd_convert_kernel(const void *in, void *out, size_t count);

struct hvd_kernels {
    /* On elements; on float where elements have to be widened first. NULL: no such op. */
    hvd_combine_kernel *combine[HVD_OP_COUNT];
    hvd_scale_kernel *scale; /* likewise; NULL: scaling changes nothing */
    hvd_convert_kernel *widen; /* to float; NULL: elements are their own partials */
    hvd_convert_kernel *narrow; /* from float */
};

/* Elements that are worked on at a time, so that intermediate values stay in the L1 cache:
 * two blocks of float or one of double take 8 KiB. */
enum {
    HVD_BLOCK_ELEMENTS = 1024,
};

/* dtype < HVD_DTYPE_COUNT. */
const struct hvd_kernels *hvd_kernels_of(enum hvd_dtype dtype);

#endif
