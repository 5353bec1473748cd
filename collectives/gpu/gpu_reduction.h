/* SPDX-License-Identifier: Apache-2.0 */
/* Divides a reduction between NCCL and the kernels. Pure.
 *
 *   NCCL      lacks bfloat16 before 2.10. From 2.11 on it applies factors to floats, in
 *             the type of the tensors. It never applies factors to integers
 *   kernels   multiply, convert 16-bit floats to float, and round to the wire type; they
 *             run before and after NCCL */
#ifndef HVD_GPU_REDUCTION_H
#define HVD_GPU_REDUCTION_H

#include <stdbool.h>

#include "collectives/gpu/gpu_module.h"
#include "collectives/request/descriptor.h"

struct hvd_gpu_reduction {
    /* NCCL's type: that of the tensors, their wire type, uint8 for bool, or float32 */
    enum hvd_dtype dtype;
    enum hvd_op op; /* NCCL's operation; never AVERAGE */
    double before; /* factor that a kernel applies to each rank's elements */
    double within; /* factor that NCCL applies to each rank's elements; SUM only */
    double after; /* factor that a kernel applies to the results */
    /* divisor that a kernel applies to the results, for averages of integers; else 1 */
    uint32_t divisor;
    bool by_kernel; /* kernels are needed on all ranks */
};

/* Finds the reduction for a set of `size` ranks. Returns false if the set must use host
 * memory. has_kernels: all ranks have kernels. The result is the same on all ranks. */
bool hvd_gpu_reduction_find(const struct hvd_descriptor *descriptor, int size,
                            int nccl_version, bool has_kernels,
                            struct hvd_gpu_reduction *reduction);

/* Returns the reduction for packed elements. If all ranks have kernels, these scale while
 * packing and NCCL only adds: switches (NVLink SHARP) cannot compute a sum with a factor.
 */
struct hvd_gpu_reduction
hvd_gpu_reduction_of_packed(const struct hvd_gpu_reduction *reduction, bool has_kernels);

/* Return steps of the reduction, without addresses and count: a collective of NCCL; a
 * move of tensors of type `dtype` to NCCL's type, and a move of the results back. */
struct hvd_gpu_step hvd_gpu_reduction_step(const struct hvd_gpu_reduction *reduction,
                                           enum hvd_gpu_step_kind kind);
struct hvd_gpu_step hvd_gpu_reduction_move_in(const struct hvd_gpu_reduction *reduction,
                                              enum hvd_dtype dtype);
struct hvd_gpu_step hvd_gpu_reduction_move_out(const struct hvd_gpu_reduction *reduction,
                                               enum hvd_dtype dtype);

#endif
