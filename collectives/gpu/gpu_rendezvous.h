/* SPDX-License-Identifier: Apache-2.0 */
/* The rendezvous of a process set: each rank sends an offer to all others, over hvd's own
 * connections. From these offers all ranks choose the same path, algorithm and packing.
 */
#ifndef HVD_GPU_RENDEZVOUS_H
#define HVD_GPU_RENDEZVOUS_H

#include "collectives/gpu/gpu_module.h"

struct hvd_team;
struct hvd_gpu_run;
struct hvd_boot;

/* The facts that a rank sends to the others about its GPU, libraries and settings. */
struct hvd_gpu_offer {
    struct hvd_gpu_identity identity;
    int32_t path; /* enum hvd_gpu_path */
    int32_t allreduce; /* enum hvd_gpu_allreduce */
    int32_t direct; /* enum hvd_gpu_direct */
    int32_t takes_windows; /* HVD_NCCL_WINDOWS=1 */
    int32_t ucx_version; /* 0 if the rank does not use UCX */
    int64_t one_kernel_bytes; /* HVD_GPU_ONE_KERNEL; 0: off */
    int64_t pack_below; /* bytes, or HVD_GPU_PACK_AUTO */
    /* NCCL id for the node's communicator; zero unless this rank makes it */
    unsigned char node_id[HVD_GPU_ID_BYTES];
};

struct hvd_gpu_rendezvous {
    const struct hvd_gpu_offer *offers; /* [size] */
    const struct hvd_team *team;
    const struct hvd_boot *boot;
};

/* Returns why the layout of a set rules out the hierarchical algorithm; "" if it does
 * not. */
const char *hvd_gpu_hierarchical_obstacle(const struct hvd_team *team);

/* For a set that uses NCCL: finds the algorithms between nodes that it may use, and
 * creates what they need in run->set. */
int hvd_gpu_candidates_agree(struct hvd_gpu_run *run,
                             const struct hvd_gpu_rendezvous *rendezvous,
                             struct hvd_error *err);

/* Logs why HVD_GPU_DIRECT=on, if a rank has set it, has no effect on this set. */
void hvd_gpu_log_unused_direct(const struct hvd_gpu_run *run,
                               const struct hvd_gpu_rendezvous *rendezvous,
                               const char *reason);

/* For a set that uses NCCL: applies the largest HVD_GPU_PACK_BELOW of all ranks; if no
 * rank has set it, the limit will be measured. Fills in run->set. */
void hvd_gpu_packing_agree(struct hvd_gpu_run *run,
                           const struct hvd_gpu_rendezvous *rendezvous);

/* Call after hvd_gpu_packing_agree: takes memory for packed tensors before the training
 * fills the device. A full device is not a failure. */
int hvd_gpu_packing_reserve(struct hvd_gpu_run *run, struct hvd_error *err);

/* For a set that uses NCCL: whether it may use windows. Fills in run->set. */
void hvd_gpu_window_agree(struct hvd_gpu_run *run,
                          const struct hvd_gpu_rendezvous *rendezvous);

/* For a set that uses NCCL: whether one kernel may reduce its small batches. Fills in
 * run->set. */
void hvd_gpu_inbox_agree(struct hvd_gpu_run *run,
                         const struct hvd_gpu_rendezvous *rendezvous);

#endif
