/* SPDX-License-Identifier: Apache-2.0 */
/* Instead of the kernels where nvcc is missing or not wanted. */
#include "collectives/gpu/module/kernel_image.h"

#include <stddef.h>

const struct hvd_kernel_image hvd_kernel_image = {NULL, HVD_NO_KERNELS_BECAUSE};
