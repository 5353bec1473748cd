/* SPDX-License-Identifier: Apache-2.0 */
/* The InfiniBand and RoCE adapters of a node, according to the kernel and the
 * environment. */
#ifndef HVD_RDMA_H
#define HVD_RDMA_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu_binding/base/error.h"

struct hvd_rdma_devices {
    char names[128]; /* active adapters, "mlx5_0, mlx5_1"; "" if there are none */
    bool has_peermem; /* the kernel module nvidia_peermem is loaded */
};

/* Finds the adapters. root is the folder to read instead of /, for tests; otherwise
 * "". */
void hvd_rdma_find(const char *root, struct hvd_rdma_devices *devices);

/* Returns the value of a variable, or NULL if it is not set. */
typedef const char *hvd_look_up(const char *name);

/* Finds an environment variable that prevents NCCL, or UCX, from using the adapters.
 * Returns true and writes it to text, such as "NCCL_IB_DISABLE=1"; false if there is
 * none. Pure. */
bool hvd_rdma_nccl_obstacle(hvd_look_up *look_up, char *text, size_t size);
bool hvd_rdma_ucx_obstacle(hvd_look_up *look_up, const char *names, char *text,
                           size_t size);

/* Returns true and writes the reason to text if UCX cannot use an adapter of this node:
 * none is active, or the environment forbids it. Returns false if UCX can use one. */
bool hvd_rdma_is_unusable(char *text, size_t size);

/* Returns 0 if this process may lock as much memory as UCX needs for an adapter, else
 * HVD_ERR_SYS, with the limit and the remedy. */
int hvd_rdma_check_memlock(struct hvd_error *err);

#endif
