/* SPDX-License-Identifier: Apache-2.0 */
/* Makes one row of a plan true for the calling thread, and for what it starts later. */
#ifndef HVD_APPLY_H
#define HVD_APPLY_H

#include <stdbool.h>

#include "gpu_binding/plan.h"

/* The calling thread's own mask. */
int hvd_affinity_get(struct hvd_cpuset *cpus, struct hvd_error *err);

/* The cpus the thread could bind itself to: asks for all, looks what the kernel granted
 * (the cgroup's cpuset), and puts the old mask back. */
int hvd_affinity_limit(struct hvd_cpuset *limit, struct hvd_error *err);

/* Binds the thread to the row's cpus that are also in limit (NULL: no limit) and reports
 * them in *bound. Mode none binds nothing. An empty rest is HVD_ERR_ARG, the mask
 * stays. */
int hvd_apply_cpus(const struct hvd_plan *plan, int local_rank,
                   const struct hvd_cpuset *limit, struct hvd_cpuset *bound,
                   struct hvd_error *err);

/* Prefers the row's memory node (MPOL_PREFERRED, so that a full node is no failure). Does
 * nothing for a row without one. */
int hvd_apply_memory(const struct hvd_plan *plan, int local_rank, struct hvd_error *err);

/* Receives each variable; returns 0, or anything else for a failure. With overwrite false
 * a variable that exists is left alone and that is no failure. */
typedef int (*hvd_env_setter)(void *context, const char *name, const char *value,
                              bool overwrite);

/* Hands over the environment of the row. Replaced, so that those of an outer launch do
 * not survive: HVD_CPUS (from bound), HVD_NIC (empty for none), and with a GPU
 * HVD_GPU_LIST and HVD_GPU_INDEX. Only where unset: UCX_NET_DEVICES with a NIC,
 * CUDA_DEVICE_ORDER with a GPU. setter NULL: setenv in this process. */
int hvd_apply_env(const struct hvd_plan *plan, int local_rank,
                  const struct hvd_cpuset *bound, hvd_env_setter setter, void *context,
                  struct hvd_error *err);

#endif
