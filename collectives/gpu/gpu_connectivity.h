/* SPDX-License-Identifier: Apache-2.0 */
/* Logs how the GPUs of a process set can reach each other, as far as CUDA, the kernel and
 * the environment allow. NCCL_DEBUG=INFO shows the connections that NCCL chose. */
#ifndef HVD_GPU_CONNECTIVITY_H
#define HVD_GPU_CONNECTIVITY_H

#include "collectives/gpu/gpu_module.h"
#include "pmix_boot/boot.h"

struct hvd_team;

/* Flags of hvd_gpu_identity.network: the network of a rank's node. */
enum {
    HVD_GPU_NET_IB = 1, /* an active InfiniBand or RoCE adapter */
    HVD_GPU_NET_IB_OFF = 2, /* the environment forbids NCCL to use the adapter */
    HVD_GPU_NET_UCX_OFF = 4, /* the environment forbids UCX to use the adapter */
    /* the adapter can access GPU memory, by nvidia_peermem or dma-buf */
    HVD_GPU_NET_GPUDIRECT = 8,
    HVD_GPU_NET_P2P_OFF = 16, /* the environment forbids NCCL to use P2P within a node */
    /* UCX accepts GPU memory, and HVD_GPU_DIRECT allows it; set by the caller of
     * hvd_gpu_network_flags. */
    HVD_GPU_NET_UCX_CUDA = 32,
};

/* Returns the flags of this rank's node, without HVD_GPU_NET_UCX_CUDA. */
int32_t hvd_gpu_network_flags(const struct hvd_gpu_identity *identity);

/* The first member on each node logs, at info level, a line for each member on its node
 * and a few lines for the other nodes. It warns of settings that keep NCCL or UCX from a
 * faster path; if many nodes have the same settings, only the first node warns.
 * identities: [size] identities of the members. */
void hvd_gpu_connectivity_log(const struct hvd_team *team, const struct hvd_boot *boot,
                              const struct hvd_gpu_module *module,
                              const struct hvd_gpu_identity *const *identities);

/* Returns the name of the host of a member of the team. */
const char *hvd_gpu_member_host(const struct hvd_team *team, const struct hvd_boot *boot,
                                int member);

#endif
