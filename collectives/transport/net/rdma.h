/* SPDX-License-Identifier: Apache-2.0 */
/* The InfiniBand and RoCE adapters of a node, as the kernel and the environment describe them. */
#ifndef HVD_RDMA_H
#define HVD_RDMA_H

#include <stdbool.h>
#include <stddef.h>

struct hvd_rdma_devices {
    char names[128]; /* of the active adapters: "mlx5_0, mlx5_1"; "": none */
    bool has_peermem; /* the kernel module nvidia_peermem is loaded */
};

/* root: "", or a directory in place of / (tests). */
void hvd_rdma_find(const char *root, struct hvd_rdma_devices *devices);

typedef const char *hvd_look_up(const char *name); /* a variable; NULL: not set */

/* The variable, with its value, that keeps NCCL or UCX from the adapters: "NCCL_IB_DISABLE=1".
 * False: there is none. Pure. */
bool hvd_rdma_nccl_obstacle(hvd_look_up *look_up, char *text, size_t size);
bool hvd_rdma_ucx_obstacle(hvd_look_up *look_up, const char *names, char *text,
                           size_t size);

/* Why UCX cannot use an adapter of this node: none is active, or the environment keeps it from them.
 * False: it can. */
bool hvd_rdma_is_unusable(char *text, size_t size);

#endif
