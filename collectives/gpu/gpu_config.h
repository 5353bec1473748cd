/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of GPU tensors. */
#ifndef HVD_GPU_CONFIG_H
#define HVD_GPU_CONFIG_H

#include <stdint.h>

struct hvd_boot;

enum {
    HVD_GPU_PACK_AUTO = -1, /* HVD_GPU_PACK_BELOW is not set */
};

/* Which path the tensors of a process set take. */
enum hvd_gpu_path {
    HVD_GPU_PATH_AUTO, /* NCCL if all ranks have it, else host memory */
    HVD_GPU_PATH_NCCL,
    HVD_GPU_PATH_HOST,
};

/* The algorithm of an allreduce by NCCL over several nodes. */
enum hvd_gpu_allreduce {
    HVD_GPU_ALLREDUCE_AUTO, /* the fastest, measured with the first large batches */
    HVD_GPU_ALLREDUCE_HIERARCHICAL, /* NCCL in each node, UCX between them: gpu_pipeline.h */
    HVD_GPU_ALLREDUCE_FLAT, /* one NCCL allreduce over all ranks */
    /* Hierarchical, with UCX on GPU memory. Chosen by HVD_GPU_DIRECT only. */
    HVD_GPU_ALLREDUCE_DIRECT,
    HVD_GPU_ALLREDUCE_ALGORITHMS,
};

/* Whether the hierarchical algorithm may use UCX on GPU memory. */
enum hvd_gpu_direct {
    HVD_GPU_DIRECT_AUTO, /* if the UCX of all ranks can, and it is faster */
    HVD_GPU_DIRECT_ON,
    HVD_GPU_DIRECT_OFF,
};

struct hvd_gpu_config {
    const struct hvd_boot *boot; /* borrowed */
    enum hvd_gpu_path path; /* of HVD_GPU_PATH */
    enum hvd_gpu_allreduce allreduce; /* of HVD_GPU_ALLREDUCE */
    int64_t pack_below; /* of HVD_GPU_PACK_BELOW, bytes; HVD_GPU_PACK_AUTO */
    enum hvd_gpu_direct direct; /* of HVD_GPU_DIRECT */
    void (*wake)(void *context); /* wakes the progress thread; any thread */
    void *context;
};

#endif
