/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled kernels in the module: of compile_kernels.sh, or none
 * (no_kernel_image.c). */
#ifndef HVD_KERNEL_IMAGE_H
#define HVD_KERNEL_IMAGE_H

struct hvd_kernel_image {
    const void *data; /* a fat binary for cuModuleLoadData; NULL: there is none */
    const char *built; /* for what, and by what; or why there is none */
};

extern const struct hvd_kernel_image hvd_kernel_image;

#endif
