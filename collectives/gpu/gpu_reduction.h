/* SPDX-License-Identifier: Apache-2.0 */
/* How NCCL and the kernels do a reduction. NCCL takes no factor before 2.11, none for integers at
 * all, factors only in the tensors' type, and no bfloat16 before 2.10. Kernels multiply, widen
 * 16-bit floats, and round to the wire type, before and after NCCL. Pure. */
#ifndef HVD_GPU_REDUCTION_H
#define HVD_GPU_REDUCTION_H

#include <stdbool.h>

#include "collectives/request/descriptor.h"

struct hvd_gpu_reduction {
    enum hvd_dtype
        dtype; /* for NCCL: that of the tensors, their wire type, uint8 for bool, or float32 */
    enum hvd_op op; /* for NCCL; not AVERAGE */
    double before; /* factor of a kernel for each rank's elements */
    double within; /* factor of NCCL for each rank's elements; SUM only */
    double after; /* factor of a kernel for the results */
    uint32_t divisor; /* of a kernel for the results: average of integers; else 1 */
    bool by_kernel; /* all ranks need kernels */
};

/* For a set of size ranks; false: it must take the host path. has_kernels: all ranks have them. All
 * ranks get the same. */
bool hvd_gpu_reduction_find(const struct hvd_proposal *proposal, int size,
                            int nccl_version, bool has_kernels,
                            struct hvd_gpu_reduction *reduction);

/* The same for elements that are packed. Kernels, if all ranks have them, scale on the way, and NCCL only adds:
 * its sum with a factor is none of those that switches compute (NVLink SHARP). */
struct hvd_gpu_reduction
hvd_gpu_reduction_of_packed(const struct hvd_gpu_reduction *reduction, bool has_kernels);

#endif
