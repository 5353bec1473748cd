/* SPDX-License-Identifier: Apache-2.0 */
/* The cpus and the memory policy of threads. Uses system calls only, because hwloc's
 * binding silently does nothing for a topology that was read from a file. */
#include "gpu_binding/affinity.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's mask: the same bits as in struct hvd_cpuset, in words of its own size. */
union kernel_mask {
    cpu_set_t set;
    unsigned char bytes[HVD_CPUSET_SIZE / 8];
};

int hvd_affinity_get_of(pid_t thread, struct hvd_cpuset *cpus)
{
    union kernel_mask mask;

    memset(&mask, 0, sizeof(mask));
    if (sched_getaffinity(thread, sizeof(mask), &mask.set) < 0) {
        return -1;
    }
    *cpus = (struct hvd_cpuset){{0}};
    for (int cpu = 0; cpu < HVD_CPUSET_SIZE; cpu++) {
        if (CPU_ISSET_S((size_t)cpu, sizeof(mask), &mask.set)) {
            hvd_cpuset_add(cpus, cpu);
        }
    }
    return 0;
}

int hvd_affinity_set_of(pid_t thread, const struct hvd_cpuset *cpus)
{
    union kernel_mask mask;

    memset(&mask, 0, sizeof(mask));
    for (int cpu = -1; (cpu = hvd_cpuset_next(cpus, cpu)) >= 0;) {
        CPU_SET_S((size_t)cpu, sizeof(mask), &mask.set);
    }
    return sched_setaffinity(thread, sizeof(mask), &mask.set);
}

int hvd_affinity_get(struct hvd_cpuset *cpus, struct hvd_error *err)
{
    if (hvd_affinity_get_of(0, cpus) < 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot read the cpus of this thread: %m");
    }
    return 0;
}

int hvd_affinity_limit(struct hvd_cpuset *limit, struct hvd_error *err)
{
    struct hvd_cpuset before;
    struct hvd_cpuset granted;
    struct hvd_cpuset all;

    memset(&all, 0xff, sizeof(all));
    if (hvd_affinity_get_of(0, &before) < 0 || hvd_affinity_set_of(0, &all) < 0) {
        return hvd_fail(err, HVD_ERR_SYS,
                        "cannot ask the kernel which cpus this thread may use: %m");
    }
    int status = hvd_affinity_get_of(0, &granted);
    if (hvd_affinity_set_of(0, &before) < 0 || status < 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot restore the cpus of this thread: %m");
    }
    *limit = granted;
    return 0;
}

int hvd_memory_prefer(int node)
{
    unsigned long nodes[HVD_MEMORY_NODES / (8 * sizeof(unsigned long))] = {0};
    const int bits = 8 * sizeof(nodes[0]);

    nodes[node / bits] = 1UL << (node % bits);
    /* set_mempolicy uses one bit less than the number that it is given. */
    return (int)syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes, 8 * sizeof(nodes) + 1);
}

bool hvd_memory_has_own_policy(void)
{
    int policy = MPOL_DEFAULT;

    return syscall(SYS_get_mempolicy, &policy, NULL, 0, NULL, 0) == 0 &&
           policy != MPOL_DEFAULT;
}
