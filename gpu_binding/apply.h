/* SPDX-License-Identifier: Apache-2.0 */
/* Applies one row of a plan to the calling thread, and so to the threads and processes
 * that it starts later. */
#ifndef HVD_APPLY_H
#define HVD_APPLY_H

#include <stdbool.h>

#include "gpu_binding/affinity.h"
#include "gpu_binding/plan.h"

/* Binds the thread to those cpus of the row that are in limit, too (NULL: no limit), and
 * writes them to *bound. Mode none binds nothing. If no cpu is left, returns HVD_ERR_ARG
 * and leaves the mask alone. */
int hvd_apply_cpus(const struct hvd_plan *plan, int local_rank,
                   const struct hvd_cpuset *limit, struct hvd_cpuset *bound,
                   struct hvd_error *err);

/* Makes the kernel prefer the row's memory node for the calling thread (MPOL_PREFERRED,
 * so a full node is no failure). Does nothing for a row without a memory node. */
int hvd_apply_memory(const struct hvd_plan *plan, int local_rank, struct hvd_error *err);

/* Sets one variable. Returns 0, or anything else on failure. If overwrite is false, an
 * existing variable is left alone, which is no failure. */
typedef int (*hvd_env_setter)(void *context, const char *name, const char *value,
                              bool overwrite);

/* Passes the row's environment to setter; NULL sets it in this process. HVD_CPUS (from
 * bound), HVD_NIC (empty for none) and, with a GPU, HVD_GPU_LIST and HVD_GPU_INDEX
 * replace existing values, because those may come from an outer launch. UCX_NET_DEVICES
 * (with a NIC) and CUDA_DEVICE_ORDER (with a GPU) are set only if they are unset. */
int hvd_apply_env(const struct hvd_plan *plan, int local_rank,
                  const struct hvd_cpuset *bound, hvd_env_setter setter, void *context,
                  struct hvd_error *err);

#endif
