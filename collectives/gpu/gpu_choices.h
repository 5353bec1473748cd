/* SPDX-License-Identifier: Apache-2.0 */
/* What may be chosen about tensors on GPUs, by the environment or by what is measured. */
#ifndef HVD_GPU_CHOICES_H
#define HVD_GPU_CHOICES_H

enum {
    HVD_GPU_PACK_AUTO = -1, /* nobody has said which tensors are packed */
};

/* How tensors of a process set go. */
enum hvd_gpu_path {
    HVD_GPU_PATH_AUTO, /* by NCCL where all ranks have it, else through host memory */
    HVD_GPU_PATH_NCCL,
    HVD_GPU_PATH_HOST,
};

/* How an allreduce by NCCL goes between nodes. */
enum hvd_gpu_allreduce {
    HVD_GPU_ALLREDUCE_AUTO, /* as the first large batches were faster */
    HVD_GPU_ALLREDUCE_HIERARCHICAL, /* added up within nodes first; gpu_pipe.h */
    HVD_GPU_ALLREDUCE_FLAT, /* by NCCL over all ranks at once */
    /* Not to be asked for: hierarchical, whose parts are exchanged where they are. */
    HVD_GPU_ALLREDUCE_DIRECT,
    HVD_GPU_ALLREDUCE_WAYS,
};

/* Whether the parts of a hierarchical one may be exchanged where they are. */
enum hvd_gpu_direct {
    HVD_GPU_DIRECT_AUTO, /* where all ranks' UCX can, and it was faster */
    HVD_GPU_DIRECT_ON,
    HVD_GPU_DIRECT_OFF,
};

#endif
