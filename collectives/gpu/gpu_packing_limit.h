/* SPDX-License-Identifier: Apache-2.0 */
/* From what size on it is faster not to pack a tensor, of what the ranks of a process set
 * have measured. Pure. */
#ifndef HVD_GPU_PACKING_LIMIT_H
#define HVD_GPU_PACKING_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/gpu/gpu_module.h"

enum {
    HVD_GPU_PACKING_TENSORS = 8, /* of a round of what is measured */
    HVD_GPU_PACKING_BYTES = 1 << 20, /* of each */
    /* Connecting and waiting may come first. */
    HVD_GPU_PACKING_ROUNDS = (HVD_GPU_MOST_SPANS - 2) / 4,
    /* The limit is between these, and this where nothing was measured. What is packed takes
     * that much memory of the GPU besides. */
    HVD_GPU_PACKING_LEAST = 64 << 10,
    HVD_GPU_PACKING_USUAL = 1 << 20,
    HVD_GPU_PACKING_MOST = 4 << 20,
};

/* What one rank has measured, the least of the rounds; as it is sent to the others. */
struct hvd_gpu_packing_times {
    int64_t is_known; /* 0: nothing of it counts */
    int64_t moves_ns; /* all tensors into the pack, and out of it */
    int64_t packed_ns; /* one allreduce of the pack */
    int64_t apart_ns; /* an allreduce of each, in one group */
};

/* Of the spans of rounds that moved in, added up the pack, moved out and added up each.
 * Connecting and waiting may have been before; then the last ones lack, or are one. */
struct hvd_gpu_packing_times hvd_gpu_packing_read(const struct hvd_gpu_span *spans,
                                                  int count);

/* Bytes, the same of the same figures; *agreed are those that count. */
int64_t hvd_gpu_packing_limit(const struct hvd_gpu_packing_times *told, int size,
                              struct hvd_gpu_packing_times *agreed);

#endif
