/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the kernels if nvcc is missing or CUDA is disabled. */
#include "collectives/gpu/module/kernel_image.h"

#include <stddef.h>

const struct hvd_kernel_image hvd_kernel_image = {NULL, HVD_NO_KERNELS_BECAUSE};
