/* SPDX-License-Identifier: Apache-2.0 */
/* The image of the stand-in's kernels, in place of a fat binary in hvd_gpu.so. The
 * stand-in itself has their code. */
#include "collectives/gpu/module/kernel_image.h"
#include "tests/fake_gpu/fake_cuda.h"

const struct hvd_kernel_image hvd_kernel_image = {FAKE_KERNEL_IMAGE, "the stand-in"};
