/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels on a device. It is no failure if there are none, because none were built or
 * the driver does not accept them. */
#ifndef HVD_GPU_KERNELS_H
#define HVD_GPU_KERNELS_H

#include "collectives/gpu/module/cuda.h"
#include "collectives/gpu/module/kernel_work.h"

#define HVD_KERNEL_ONE(...) +1
enum {
    HVD_KERNEL_COUNT = 1 HVD_KERNEL_LIST(HVD_KERNEL_ONE), /* with the copy, the first */
    HVD_KERNEL_SUM_COUNT = 0 HVD_KERNEL_SUM_LIST(HVD_KERNEL_ONE),
};
#undef HVD_KERNEL_ONE

/* Zeroed: not loaded. */
struct hvd_gpu_kernels {
    const struct hvd_cuda *cuda;
    CUmodule module;
    CUfunction functions[HVD_KERNEL_COUNT];
    CUfunction sums[HVD_KERNEL_SUM_COUNT];
    CUfunction poison;
    volatile uint32_t *aborted; /* pinned; NULL: results are not poisoned */
    char problem[256]; /* why there are none; "" if there are */
};

/* Both with the device's context. */
void hvd_kernels_load(struct hvd_gpu_kernels *kernels, const struct hvd_cuda *cuda);
void hvd_kernels_unload(struct hvd_gpu_kernels *kernels);

/* Launches the first of count steps, an HVD_GPU_MOVE, and those behind it that fit in one
 * launch. Returns how many, or a failure. */
int hvd_kernels_launch(const struct hvd_gpu_kernels *kernels, CUstream stream,
                       const struct hvd_gpu_step *steps, int count,
                       struct hvd_error *err);

/* Of results of collectives, from now on: they are wrong. Any thread. */
void hvd_kernels_tell_abort(const struct hvd_gpu_kernels *kernels);

/* As hvd_kernels_launch, the first step an HVD_GPU_POISON. */
int hvd_kernels_poison(const struct hvd_gpu_kernels *kernels, CUstream stream,
                       const struct hvd_gpu_step *steps, int count,
                       struct hvd_error *err);

/* Launches a HVD_GPU_SUM_UP. */
int hvd_kernels_sum(const struct hvd_gpu_kernels *kernels, CUstream stream,
                    const struct hvd_gpu_step *step, struct hvd_error *err);

#endif
