/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for the stand-in, which has their code itself: in hvd_gpu.so instead of a fat
 * binary. */
#include "collectives/gpu/module/kernel_image.h"
#include "tests/fake_gpu/fake_cuda.h"

const struct hvd_kernel_image hvd_kernel_image = {FAKE_KERNEL_IMAGE, "the stand-in"};
