/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled kernels in the module: made by compile_kernels.sh, or absent
 * (no_kernel_image.c). */
#ifndef HVD_KERNEL_IMAGE_H
#define HVD_KERNEL_IMAGE_H

struct hvd_kernel_image {
    const void *data; /* a fat binary for cuModuleLoadData; NULL: no kernels */
    /* the GPUs that they are compiled for, and the compiler; without kernels, the
     * reason */
    const char *built;
};

extern const struct hvd_kernel_image hvd_kernel_image;

#endif
