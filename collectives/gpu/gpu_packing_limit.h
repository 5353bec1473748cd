/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the size below which packing a tensor is faster, from times measured by the
 * ranks of a process set. Pure. */
#ifndef HVD_GPU_PACKING_LIMIT_H
#define HVD_GPU_PACKING_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/gpu/gpu_module.h"

enum {
    HVD_GPU_PACKING_TENSORS = 8, /* per round */
    HVD_GPU_PACKING_BYTES = 1 << 20, /* bytes of each tensor */
    /* number of rounds that fit into the spans of a work; two spans are left for
     * connecting and waiting */
    HVD_GPU_PACKING_ROUNDS = (HVD_GPU_MOST_SPANS - 2) / 4,
    /* Bounds of the limit, and its value if nothing was measured. The upper bound saves
     * GPU memory, because packed tensors are copied. */
    HVD_GPU_PACKING_LEAST = 64 << 10,
    HVD_GPU_PACKING_USUAL = 1 << 20,
    HVD_GPU_PACKING_MOST = 4 << 20,
};

/* The fastest times of one rank, in the form in which ranks exchange them. */
struct hvd_gpu_packing_times {
    int64_t is_known; /* 0 if not measured */
    int64_t moves_ns; /* packing and unpacking all tensors */
    int64_t packed_ns; /* one allreduce of the pack */
    int64_t apart_ns; /* one allreduce for each tensor, in one group */
};

/* Reads the spans of the rounds: pack, allreduce of the pack, unpack, allreduce of each
 * tensor. If spans for connecting and waiting come first, the last rounds or one of their
 * spans may be missing. */
struct hvd_gpu_packing_times hvd_gpu_packing_read(const struct hvd_gpu_span *spans,
                                                  int count);

/* Returns the limit in bytes, and in *agreed the times from which it is computed. */
int64_t hvd_gpu_packing_limit(const struct hvd_gpu_packing_times *told, int size,
                              struct hvd_gpu_packing_times *agreed);

#endif
