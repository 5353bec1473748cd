/* SPDX-License-Identifier: Apache-2.0 */
/* Applies one row of a plan to the calling thread. */
#include "gpu_binding/apply.h"

#include <stdio.h>
#include <stdlib.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/error.h"
#include "gpu_binding/cpulist.h"

static int no_row(const struct hvd_plan *plan, int local_rank, struct hvd_error *err)
{
    return hvd_fail(err, HVD_ERR_ARG, "the plan has %d rows and none for local rank %d",
                    plan->row_count, local_rank);
}

int hvd_apply_cpus(const struct hvd_plan *plan, int local_rank,
                   const struct hvd_cpuset *limit, struct hvd_cpuset *bound,
                   struct hvd_error *err)
{
    const struct hvd_plan_row *row = hvd_plan_row_of(plan, local_rank);
    char wanted[128];

    if (row == NULL) {
        return no_row(plan, local_rank, err);
    }
    if (plan->mode == HVD_BIND_NONE) {
        return hvd_affinity_get(bound, err);
    }
    struct hvd_cpuset cpus = row->cpus;
    hvd_cpulist_format(&row->cpus, wanted, sizeof(wanted));
    if (limit != NULL) {
        hvd_cpuset_keep(&cpus, limit);
    }
    if (hvd_cpuset_is_empty(&cpus)) {
        char granted[128];

        hvd_cpulist_format(limit, granted, sizeof(granted));
        return hvd_fail(
            err, HVD_ERR_ARG,
            "rank %d: planned for cpus %s, but the kernel allows only %s; its cpus "
            "stay as they were",
            local_rank, wanted, granted);
    }
    if (hvd_affinity_set_of(0, &cpus) < 0) {
        return hvd_fail(err, HVD_ERR_SYS, "rank %d: cannot be bound to cpus %s: %m",
                        local_rank, wanted);
    }
    *bound = cpus;
    return 0;
}

int hvd_apply_memory(const struct hvd_plan *plan, int local_rank, struct hvd_error *err)
{
    const struct hvd_plan_row *row = hvd_plan_row_of(plan, local_rank);

    if (row == NULL) {
        return no_row(plan, local_rank, err);
    }
    if (row->memory_numa == HVD_NONE) {
        return 0;
    }
    if (row->memory_numa >= HVD_MEMORY_NODES) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "rank %d: memory node %d: only numbers below %d are supported",
                        local_rank, row->memory_numa, HVD_MEMORY_NODES);
    }
    if (hvd_memory_prefer(row->memory_numa) < 0) {
        return hvd_fail(err, HVD_ERR_SYS, "rank %d: cannot prefer memory node %d: %m",
                        local_rank, row->memory_numa);
    }
    return 0;
}

static int set_own(void *context, const char *name, const char *value, bool overwrite)
{
    (void)context;
    return setenv(name, value, overwrite);
}

static void format_gpu_list(const struct hvd_gpu_list *gpus, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < gpus->count && used < size; i++) {
        used += (size_t)snprintf(text + used, size - used, "%s%d", i > 0 ? "," : "",
                                 gpus->items[i].number);
    }
}

/* Passes variables on to the setter, and keeps the name of the first one that the setter
 * could not set. */
struct exporter {
    hvd_env_setter setter;
    void *context;
    const char *refused;
};

static void export(struct exporter *exporter, const char *name, const char *value,
                   bool overwrite)
{
    if (exporter->setter(exporter->context, name, value, overwrite) != 0 &&
        exporter->refused == NULL) {
        exporter->refused = name;
    }
}

static void export_gpu(struct exporter *exporter, const struct hvd_plan *plan,
                       const struct hvd_plan_row *row)
{
    char gpus[HVD_GPU_LIST_SIZE * 12];
    char index[16];

    if (row->gpu_index == HVD_NONE) {
        return;
    }
    format_gpu_list(&plan->gpus, gpus, sizeof(gpus));
    snprintf(index, sizeof(index), "%d", row->gpu_index);
    export(exporter, HVD_ENV_GPU_LIST, gpus, true);
    export(exporter, HVD_ENV_GPU_INDEX, index, true);
    export(exporter, HVD_ENV_CUDA_DEVICE_ORDER, "PCI_BUS_ID", false);
}

int hvd_apply_env(const struct hvd_plan *plan, int local_rank,
                  const struct hvd_cpuset *bound, hvd_env_setter setter, void *context,
                  struct hvd_error *err)
{
    const struct hvd_plan_row *row = hvd_plan_row_of(plan, local_rank);
    struct exporter exporter = {setter != NULL ? setter : set_own, context, NULL};
    char cpus[4096];

    if (row == NULL) {
        return no_row(plan, local_rank, err);
    }
    hvd_cpulist_format(bound, cpus, sizeof(cpus));
    export(&exporter, HVD_ENV_CPUS, cpus, true);
    export_gpu(&exporter, plan, row);
    export(&exporter, HVD_ENV_NIC, row->nic, true);
    if (row->nic[0] != '\0') {
        export(&exporter, HVD_ENV_UCX_NET_DEVICES, row->nic, false);
    }
    if (exporter.refused != NULL) {
        return hvd_fail(
            err, HVD_ERR_SYS,
            "rank %d: cannot set %s in its environment: it is too long, or the node has "
            "no memory left: unset large variables before srun, or use another node",
            local_rank, exporter.refused);
    }
    return 0;
}
