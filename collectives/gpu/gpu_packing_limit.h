/* SPDX-License-Identifier: Apache-2.0 */
/* The size below which packing a tensor is faster, from the times that the ranks of a process set
 * have measured. Pure. */
#ifndef HVD_GPU_PACKING_LIMIT_H
#define HVD_GPU_PACKING_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/gpu/gpu_module.h"

enum {
    HVD_GPU_PACKING_TENSORS = 8, /* of a round */
    HVD_GPU_PACKING_BYTES = 1 << 20, /* of each */
    /* Two spans are for connecting and waiting. */
    HVD_GPU_PACKING_ROUNDS = (HVD_GPU_MOST_SPANS - 2) / 4,
    /* The limit is between these, and this where nothing was measured. What is packed takes
     * that much memory of the GPU besides. */
    HVD_GPU_PACKING_LEAST = 64 << 10,
    HVD_GPU_PACKING_USUAL = 1 << 20,
    HVD_GPU_PACKING_MOST = 4 << 20,
};

/* The fastest times of one rank, as they are sent to the others. */
struct hvd_gpu_packing_times {
    int64_t is_known; /* 0: not measured */
    int64_t moves_ns; /* packing and unpacking all tensors */
    int64_t packed_ns; /* one allreduce of the pack */
    int64_t apart_ns; /* an allreduce of each, in one group */
};

/* From the spans of rounds: pack, allreduce of the pack, unpack, allreduce of each. Spans of
 * connecting and waiting may precede them; then the last rounds may be missing, or one span. */
struct hvd_gpu_packing_times hvd_gpu_packing_read(const struct hvd_gpu_span *spans,
                                                  int count);

/* Bytes, the same for the same times; *agreed are those that count. */
int64_t hvd_gpu_packing_limit(const struct hvd_gpu_packing_times *told, int size,
                              struct hvd_gpu_packing_times *agreed);

#endif
