/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels on a device. Loading never fails: if none were built, or the driver rejects
 * them, `problem` says why, and launches fail. */
#ifndef HVD_GPU_KERNELS_H
#define HVD_GPU_KERNELS_H

#include "collectives/gpu/module/cuda.h"
#include "collectives/gpu/module/kernel_work.h"

#define HVD_KERNEL_ONE(...) +1
enum {
    /* including the copy, which is the first */
    HVD_KERNEL_COUNT = 1 HVD_KERNEL_LIST(HVD_KERNEL_ONE),
    HVD_KERNEL_SUM_COUNT = 0 HVD_KERNEL_SUM_LIST(HVD_KERNEL_ONE),
    HVD_KERNEL_PUSH_COUNT = 0 HVD_KERNEL_PUSH_LIST(HVD_KERNEL_ONE),
};
#undef HVD_KERNEL_ONE

/* Zeroed: not loaded. */
struct hvd_gpu_kernels {
    const struct hvd_cuda *cuda;
    CUmodule module;
    CUfunction functions[HVD_KERNEL_COUNT];
    CUfunction sums[HVD_KERNEL_SUM_COUNT];
    CUfunction pushes[HVD_KERNEL_PUSH_COUNT];
    CUfunction poison;
    /* pinned; NULL: results are not poisoned, and HVD_GPU_PUSH cannot be launched */
    volatile uint32_t *aborted;
    char problem[256]; /* why there are no kernels; "" if there are */
};

/* Both need the device's context. */
void hvd_kernels_load(struct hvd_gpu_kernels *kernels, const struct hvd_cuda *cuda);
void hvd_kernels_unload(struct hvd_gpu_kernels *kernels);

/* Launches the first of `count` steps, an HVD_GPU_MOVE, together with the following steps
 * that fit in the same launch. Returns the number of steps launched, or a failure. */
int hvd_kernels_launch(const struct hvd_gpu_kernels *kernels, CUstream stream,
                       const struct hvd_gpu_step *steps, int count,
                       struct hvd_error *err);

/* From now on hvd_poison overwrites the results of collectives. Any thread. */
void hvd_kernels_tell_abort(const struct hvd_gpu_kernels *kernels);

/* Like hvd_kernels_launch, for steps that begin with an HVD_GPU_POISON. */
int hvd_kernels_poison(const struct hvd_gpu_kernels *kernels, CUstream stream,
                       const struct hvd_gpu_step *steps, int count,
                       struct hvd_error *err);

/* Launches an HVD_GPU_SUM_UP. */
int hvd_kernels_sum(const struct hvd_gpu_kernels *kernels, CUstream stream,
                    const struct hvd_gpu_step *step, struct hvd_error *err);

/* Launches steps that begin with an HVD_GPU_PUSH, all of that kind at once. Returns their
 * number, or a failure. */
int hvd_kernels_push(const struct hvd_gpu_kernels *kernels, CUstream stream,
                     const struct hvd_gpu_step *steps, int count, struct hvd_error *err);

#endif
