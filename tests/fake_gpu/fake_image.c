/* SPDX-License-Identifier: Apache-2.0 */
/* An image that the stand-in accepts in place of the fat binary in hvd_gpu.so. The code
 * of the kernels is in the stand-in itself. */
#include "collectives/gpu/module/kernel_image.h"
#include "tests/fake_gpu/fake_cuda.h"

const struct hvd_kernel_image hvd_kernel_image = {FAKE_KERNEL_IMAGE, "the stand-in"};
