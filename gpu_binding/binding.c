/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a plan from the description of a step, and applies a row to a thread. */
#include "gpu_binding/binding.h"

#include "gpu_binding/base/error.h"
#include "gpu_binding/plan_steps.h"

/* The cpus and GPUs that a step has on this node. */
struct resolved {
    struct hvd_cpuset allowed;
    struct hvd_gpu_list gpus;
    bool lacks_cores; /* the step names cores, and this node has none of them */
};

/* Limits the plan to the cores that Slurm names, unless this node has none of them. */
static int limit_to_cores(const struct hvd_topology *topology, const char *cores,
                          struct resolved *resolved, struct hvd_error *err)
{
    struct hvd_cpuset named;

    if (cores == NULL) {
        return 0;
    }
    int status = hvd_topology_cores(topology, cores, &named, err);
    if (status < 0) {
        return status;
    }
    resolved->lacks_cores = !hvd_cpuset_overlaps(&resolved->allowed, &named);
    if (!resolved->lacks_cores) {
        hvd_cpuset_keep(&resolved->allowed, &named);
    }
    return 0;
}

static int resolve_cpus(const struct hvd_topology *topology,
                        const struct hvd_binding_step *step, struct resolved *resolved,
                        struct hvd_error *err)
{
    resolved->allowed = topology->allowed;
    if (step->cpus != NULL) {
        hvd_cpuset_keep(&resolved->allowed, step->cpus);
        if (hvd_cpuset_is_empty(&resolved->allowed)) {
            char wanted[128];
            char allowed[128];

            hvd_cpulist_format(step->cpus, wanted, sizeof(wanted));
            hvd_cpulist_format(&topology->allowed, allowed, sizeof(allowed));
            return hvd_fail(err, HVD_ERR_ARG,
                            "none of the cpus %s may be used; this node allows %s",
                            wanted, allowed);
        }
    }
    return limit_to_cores(topology, step->cores, resolved, err);
}

static int resolve_gpus(const struct hvd_topology *topology,
                        const struct hvd_binding_step *step, struct hvd_gpu_list *gpus,
                        struct hvd_error *err)
{
    const struct hvd_gpu_list *own = NULL;
    int status = 0;

    if (step->gpu_numbers != NULL) {
        status = hvd_gpu_list_parse(topology, step->gpu_numbers, gpus, err);
        own = gpus;
    } else if (step->gpu_count > HVD_GPU_LIST_SIZE) {
        status = hvd_fail(err, HVD_ERR_UNSUPPORTED,
                          "%d gpus on one node: hvd supports at most %d", step->gpu_count,
                          HVD_GPU_LIST_SIZE);
    } else if (step->gpu_count > 0) {
        hvd_gpu_list_counted(topology, step->gpu_count, gpus);
        own = gpus;
    } else {
        hvd_gpu_list_all(topology, gpus);
    }
    if (status < 0 || step->visible_devices == NULL) {
        return status;
    }
    struct hvd_gpu_list visible;
    status = hvd_gpu_list_visible(topology, step->visible_devices, own, &visible, err);
    if (status == 0) {
        *gpus = visible;
    }
    return status;
}

static int plan_rows(const struct hvd_topology *topology,
                     const struct hvd_binding_step *step, int rank_count,
                     const struct hvd_plan_options *options, struct hvd_plan *plan,
                     struct hvd_error *err)
{
    struct resolved resolved = {.lacks_cores = false};
    struct hvd_plan_input input = {topology, &resolved.allowed, &resolved.gpus,
                                   rank_count, *options};
    struct hvd_plan made;
    int status = resolve_cpus(topology, step, &resolved, err);

    if (status == 0) {
        status = resolve_gpus(topology, step, &resolved.gpus, err);
    }
    if (status < 0) {
        return status;
    }
    if (step->task_mask != NULL) {
        hvd_plan_follow_mask(topology, &resolved.allowed, step->task_mask,
                             &input.options);
    }
    status = hvd_plan_make(&input, &made, err);
    if (status == 0 && resolved.lacks_cores) {
        status = hvd_plan_note(&made, err,
                               "the step has cores %s, but this node has only %d cores: "
                               "all of its cpus are used instead",
                               step->cores, topology->core_count);
        if (status < 0) {
            hvd_plan_finish(&made);
        }
    }
    if (status == 0) {
        *plan = made;
    }
    return status;
}

int hvd_binding_plan(const struct hvd_topology *topology,
                     const struct hvd_binding_step *step, struct hvd_plan *plan,
                     struct hvd_error *err)
{
    return plan_rows(topology, step, step->rank_count, &step->options, plan, err);
}

int hvd_binding_plan_alone(const struct hvd_topology *topology,
                           const struct hvd_binding_step *step, int local_rank,
                           struct hvd_plan *plan, struct hvd_error *err)
{
    struct hvd_plan_options options = step->options;
    struct hvd_binding_step own = *step;

    if (options.mode != HVD_BIND_NONE) {
        options.mode = HVD_BIND_SOCKET;
    }
    if (own.cpus == NULL) {
        own.cpus = step->task_mask;
    }
    int status = plan_rows(topology, &own, 1, &options, plan, err);
    if (status == 0) {
        plan->rows[0].local_rank = local_rank;
    }
    return status;
}

int hvd_binding_apply(const struct hvd_plan *plan, int local_rank, hvd_env_setter setter,
                      void *context, struct hvd_cpuset *bound, struct hvd_error *err)
{
    struct hvd_error first = {0};
    struct hvd_error later;
    struct hvd_cpuset limit;
    struct hvd_cpuset *known = NULL;

    if (hvd_affinity_limit(&limit, &first) == 0) {
        known = &limit;
    }
    if (hvd_apply_cpus(plan, local_rank, known, bound,
                       first.status == 0 ? &first : &later) < 0 &&
        hvd_affinity_get(bound, &later) < 0) {
        *bound = (struct hvd_cpuset){{0}};
    }
    hvd_apply_memory(plan, local_rank, first.status == 0 ? &first : &later);
    hvd_apply_env(plan, local_rank, bound, setter, context,
                  first.status == 0 ? &first : &later);
    if (first.status < 0 && err != NULL) {
        *err = first;
    }
    return first.status;
}
