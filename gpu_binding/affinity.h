/* SPDX-License-Identifier: Apache-2.0 */
/* The cpus and the memory policy of threads, by system calls. */
#ifndef HVD_AFFINITY_H
#define HVD_AFFINITY_H

#include <stdbool.h>
#include <sys/types.h>

#include "gpu_binding/base/error.h"
#include "gpu_binding/cpuset.h"

/* Reads the cpus that the calling thread is bound to. */
int hvd_affinity_get(struct hvd_cpuset *cpus, struct hvd_error *err);

/* Finds the cpus that the thread may bind itself to: asks for all, reads what the kernel
 * granted (the cgroup's cpuset), and restores the old mask. */
int hvd_affinity_limit(struct hvd_cpuset *limit, struct hvd_error *err);

/* Read and change the cpus of a thread of this process; 0 is the calling thread. Return
 * 0, or -1 with errno. */
int hvd_affinity_get_of(pid_t thread, struct hvd_cpuset *cpus);
int hvd_affinity_set_of(pid_t thread, const struct hvd_cpuset *cpus);

/* The most memory nodes that a kernel can be built for. */
#define HVD_MEMORY_NODES 1024

/* Makes the kernel prefer a memory node, 0 to HVD_MEMORY_NODES - 1, for the calling
 * thread (MPOL_PREFERRED, so a full node is no failure). Returns 0, or -1 with errno. */
int hvd_memory_prefer(int node);

/* True if the calling thread has another memory policy than the default one. False also
 * if the kernel refuses to tell, as in some containers. */
bool hvd_memory_has_own_policy(void);

#endif
