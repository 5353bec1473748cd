/* SPDX-License-Identifier: Apache-2.0 */
/* The rendezvous of a process set: each rank sends an offer to all others, over hvd's own
 * connections. From the same offers all ranks choose the same path, algorithm and packing. */
#ifndef HVD_GPU_RENDEZVOUS_H
#define HVD_GPU_RENDEZVOUS_H

#include "collectives/gpu/gpu_module.h"

struct hvd_team;
struct hvd_gpu_run;
struct hvd_boot;

/* What a rank tells the others about its GPU, libraries and settings. */
struct hvd_gpu_offer {
    struct hvd_gpu_identity identity;
    int32_t path; /* enum hvd_gpu_path */
    int32_t allreduce; /* enum hvd_gpu_allreduce */
    int32_t direct; /* enum hvd_gpu_direct */
    int32_t ucx_version; /* 0: it does not use UCX */
    int64_t pack_below; /* bytes, or HVD_GPU_PACK_AUTO */
    unsigned char node_id[HVD_GPU_ID_BYTES]; /* of its node; zero unless it makes one */
};

struct hvd_gpu_rendezvous {
    const struct hvd_gpu_offer *offers; /* [size] */
    const struct hvd_team *team;
    const struct hvd_boot *boot;
};

/* Why the layout of a set rules out the hierarchical algorithm; "" if it does not. */
const char *hvd_gpu_hierarchical_obstacle(const struct hvd_team *team);

/* For a set that uses NCCL: chooses the algorithms over several nodes, and creates what they
 * need in run->set. */
int hvd_gpu_algorithm_agree(struct hvd_gpu_run *run,
                            const struct hvd_gpu_rendezvous *rendezvous,
                            struct hvd_error *err);

/* Logs why HVD_GPU_DIRECT=on, if a rank has it, has no effect on this set. */
void hvd_gpu_log_unused_direct(const struct hvd_gpu_run *run,
                               const struct hvd_gpu_rendezvous *rendezvous,
                               const char *reason);

/* For a set that uses NCCL: the largest HVD_GPU_PACK_BELOW of all ranks, if one has it. Fills in
 * run->set. */
void hvd_gpu_packing_agree(struct hvd_gpu_run *run,
                           const struct hvd_gpu_rendezvous *rendezvous);

/* After that: takes memory for packed tensors, before the training has filled the device. A full device
 * is no failure. */
int hvd_gpu_packing_reserve(struct hvd_gpu_run *run, struct hvd_error *err);

#endif
