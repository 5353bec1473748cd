/* SPDX-License-Identifier: Apache-2.0 */
/* How the GPUs of a process set reach each other by NCCL, in words: what CUDA, the kernel
 * and the environment say about it, not what NCCL has chosen in the end (NCCL_DEBUG=INFO
 * tells that). */
#ifndef HVD_GPU_ROUTES_H
#define HVD_GPU_ROUTES_H

#include "collectives/execute/team.h"
#include "collectives/gpu/gpu_module.h"
#include "pmix_boot/boot.h"

/* Of a rank's node and environment: card.routes. */
enum {
    HVD_ROUTE_IB = 1, /* an active InfiniBand card, or one that speaks RoCE */
    HVD_ROUTE_IB_OFF = 2, /* which NCCL may not use */
    HVD_ROUTE_UCX_OFF = 4, /* nor may UCX */
    HVD_ROUTE_DIRECT = 8, /* they may read the GPU's memory: nvidia_peermem or dma-buf */
    HVD_ROUTE_P2P_OFF = 16, /* NCCL may not let GPUs of a node reach each other */
    HVD_ROUTE_UCX_CUDA =
        32, /* UCX takes, and may get, GPU memory; not of hvd_gpu_routes_flags */
};

/* The cards of a node. */
struct hvd_routes_cards {
    char names[128]; /* of the active ones: "mlx5_0, mlx5_1"; "": none */
    bool has_peermem; /* the kernel has the module */
};

/* root: "" or, for tests, what stands for /. */
void hvd_routes_look(const char *root, struct hvd_routes_cards *cards);

typedef const char *hvd_look_up(const char *name); /* a variable; NULL: not set */

/* Which variable keeps NCCL, or UCX, from the cards, with its value: "NCCL_IB_DISABLE=1";
 * false: none does. Pure. */
bool hvd_routes_nccl_obstacle(hvd_look_up *look_up, char *text, size_t size);
bool hvd_routes_ucx_obstacle(hvd_look_up *look_up, const char *names, char *text,
                             size_t size);

/* card.routes of this rank. */
int32_t hvd_gpu_routes_flags(const struct hvd_gpu_card *card);

/* The first member of each node tells, at info level: a line for each member on its node,
 * and a few for all other nodes. Warns of what could be faster; where that is so on many
 * nodes, the first one does. cards: [size] of the members. */
void hvd_gpu_routes_tell(const struct hvd_team *team, const struct hvd_boot *boot,
                         const struct hvd_gpu_module *module,
                         const struct hvd_gpu_card *const *cards);

#endif
