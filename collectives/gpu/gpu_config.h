/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of GPU tensors. */
#ifndef HVD_GPU_CONFIG_H
#define HVD_GPU_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

struct hvd_boot;

enum {
    HVD_GPU_PACK_AUTO = -1, /* HVD_GPU_PACK_BELOW is not set */
};

/* How the tensors of a process set are reduced. */
enum hvd_gpu_path {
    HVD_GPU_PATH_AUTO, /* by NCCL if all ranks have it, else through host memory */
    HVD_GPU_PATH_NCCL,
    HVD_GPU_PATH_HOST,
};

/* The algorithm of an allreduce by NCCL over several nodes. */
enum hvd_gpu_allreduce {
    HVD_GPU_ALLREDUCE_UNSET, /* nothing was set: flat */
    /* the fastest for each size class, measured with the first large batches */
    HVD_GPU_ALLREDUCE_AUTO,
    /* NCCL within each node, UCX between nodes: gpu_pipeline.h */
    HVD_GPU_ALLREDUCE_HIERARCHICAL,
    HVD_GPU_ALLREDUCE_FLAT, /* one NCCL allreduce over all ranks */
    /* Hierarchical, with UCX on GPU memory; used only if HVD_GPU_DIRECT allows it. */
    HVD_GPU_ALLREDUCE_DIRECT,
    HVD_GPU_ALLREDUCE_ALGORITHMS,
};

/* Whether the hierarchical algorithm may use UCX on GPU memory. */
enum hvd_gpu_direct {
    HVD_GPU_DIRECT_AUTO, /* if the UCX of all ranks supports it, and it is faster */
    HVD_GPU_DIRECT_ON,
    HVD_GPU_DIRECT_OFF,
};

struct hvd_gpu_config {
    const struct hvd_boot *boot; /* borrowed */
    enum hvd_gpu_path path; /* value of HVD_GPU_PATH */
    enum hvd_gpu_allreduce allreduce; /* value of HVD_GPU_ALLREDUCE */
    int64_t pack_below; /* HVD_GPU_PACK_BELOW in bytes, or HVD_GPU_PACK_AUTO */
    enum hvd_gpu_direct direct; /* value of HVD_GPU_DIRECT */
    bool takes_windows; /* HVD_NCCL_WINDOWS=1 */
    int64_t one_kernel_bytes; /* HVD_GPU_ONE_KERNEL; 0: off */
    void (*wake)(void *context); /* wakes the progress thread; any thread */
    bool (*is_traced)(void *context); /* whether to measure what is launched now */
    void *context;
};

#endif
