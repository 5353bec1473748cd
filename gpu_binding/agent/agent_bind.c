/* SPDX-License-Identifier: Apache-2.0 */
/* Binds the threads of a process. */
#include "gpu_binding/agent/agent_bind.h"

#include <dirent.h>
#include <stdlib.h>

#include "gpu_binding/affinity.h"
#include "gpu_binding/cpulist.h"
#include "gpu_binding/topology.h"

bool hvd_agent_is_unbound(const struct hvd_agent_plan *plan)
{
    struct hvd_cpuset now;

    return hvd_affinity_get_of(0, &now) == 0 && hvd_cpuset_is_equal(&now, &plan->agent) &&
           !hvd_memory_has_own_policy();
}

/* Binds each thread that has the cpus `from`. Returns whether there was one. */
static bool bind_threads(DIR *threads, const struct hvd_cpuset *from,
                         const struct hvd_cpuset *to)
{
    bool has_bound = false;
    const struct dirent *entry;
    struct hvd_cpuset now;

    rewinddir(threads);
    while ((entry = readdir(threads)) != NULL) {
        pid_t thread = (pid_t)atoi(entry->d_name);

        if (thread > 0 && hvd_affinity_get_of(thread, &now) == 0 &&
            hvd_cpuset_is_equal(&now, from) && hvd_affinity_set_of(thread, to) == 0) {
            has_bound = true;
        }
    }
    return has_bound;
}

/* Binds the threads of this process. A thread that is not bound yet may start another one
 * meanwhile, so looks for threads until there is none left to bind. */
static int bind_process(const struct hvd_cpuset *from, const struct hvd_cpuset *to,
                        struct hvd_error *err)
{
    static const char path[] = "/proc/self/task";
    char text[128];
    DIR *threads;

    if (hvd_affinity_set_of(0, to) < 0) {
        hvd_cpulist_format(to, text, sizeof(text));
        return hvd_fail(err, HVD_ERR_SYS, "cannot bind this process to cpus %s: %m",
                        text);
    }
    threads = opendir(path);
    if (threads == NULL) {
        return hvd_fail(err, HVD_ERR_SYS,
                        "only one thread of this process is bound: cannot read %s: %m",
                        path);
    }
    while (bind_threads(threads, from, to)) {
    }
    closedir(threads);
    return 0;
}

static int bind_cpus(const struct hvd_agent_plan *plan, struct hvd_error *err)
{
    struct hvd_cpuset cpus = plan->cpus;
    char wanted[128];
    char allowed[128];

    hvd_cpuset_keep(&cpus, &plan->agent);
    if (hvd_cpuset_is_empty(&cpus)) {
        hvd_cpulist_format(&plan->cpus, wanted, sizeof(wanted));
        hvd_cpulist_format(&plan->agent, allowed, sizeof(allowed));
        return hvd_fail(err, HVD_ERR_ARG,
                        "planned for cpus %s, but this process may use only %s", wanted,
                        allowed);
    }
    return hvd_cpuset_is_equal(&cpus, &plan->agent)
               ? 0
               : bind_process(&plan->agent, &cpus, err);
}

int hvd_agent_bind(const struct hvd_agent_plan *plan, struct hvd_error *err)
{
    int status = hvd_cpuset_is_empty(&plan->cpus) ? 0 : bind_cpus(plan, err);

    if (status == 0 && plan->memory_node != HVD_NONE &&
        hvd_memory_prefer(plan->memory_node) < 0) {
        status = hvd_fail(err, HVD_ERR_SYS, "cannot prefer memory node %d: %m",
                          plan->memory_node);
    }
    return status;
}
