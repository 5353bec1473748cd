/* SPDX-License-Identifier: Apache-2.0 */
/* How the numbers of a reduction go through NCCL, where it cannot do all by itself: it
 * takes no factor before 2.11, none for integers ever, a factor in the tensors' own type
 * alone, and no bfloat16 before 2.10. Kernels multiply, widen 16-bit floats, and round to
 * the wire type, before and after. Pure. */
#ifndef HVD_GPU_REDUCTION_H
#define HVD_GPU_REDUCTION_H

#include <stdbool.h>

#include "collectives/agreement/message.h"

struct hvd_gpu_reduction {
    enum hvd_dtype
        dtype; /* that NCCL reduces: the tensors', their wire type, uint8 of bool, or float32 */
    enum hvd_op op; /* of NCCL: not AVERAGE */
    double before; /* by a kernel, each rank's elements; so after: the results */
    double within; /* by NCCL, of SUM: each rank's elements */
    double after;
    uint32_t divisor; /* along with after, of an average of integers; else 1 */
    bool by_kernel; /* some of this needs kernels on all ranks */
};

/* The reduction of a reduction of size ranks; false: it has to go through host memory.
 * has_kernels: all ranks have them. All ranks get the same. */
bool hvd_gpu_reduction_find(const struct hvd_proposal *proposal, int size,
                            int nccl_version, bool has_kernels,
                            struct hvd_gpu_reduction *reduction);

#endif
