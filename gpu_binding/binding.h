/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a launcher in their order, for the Slurm plugin and hvdrun. They need no
 * other header of this folder.
 *
 *   once per node:   hvd_topology_load
 *   once per task    hvd_binding_plan       every task computes the same plan
 *   (or per node):
 *   in each task:    hvd_binding_apply      before exec
 *   first task:      hvd_table_print        when the user wants to see it
 *
 * Nothing here reads an environment variable or keeps state between calls. */
#ifndef HVD_BINDING_H
#define HVD_BINDING_H

#include "gpu_binding/apply.h"
#include "gpu_binding/cpulist.h"
#include "gpu_binding/plan.h"
#include "gpu_binding/table.h"

/* A step, as far as the launcher knows it. If all but rank_count is zero, the step has
 * all GPUs and cpus of this node. */
struct hvd_binding_step {
    int rank_count; /* ranks on this node */
    const char *cores; /* Slurm's S_STEP_ALLOC_CORES; NULL: no such limit */
    const struct hvd_cpuset *cpus; /* a further limit; NULL: none */
    /* the cpus that the launcher bound a task to; NULL: unknown */
    const struct hvd_cpuset *task_mask;
    const char *gpu_numbers; /* SLURM_STEP_GPUS; NULL: unknown */
    const char *visible_devices; /* CUDA_VISIBLE_DEVICES; NULL: unset */
    int gpu_count; /* number of GPUs, if no list names them; 0: all of the node */
    struct hvd_plan_options options;
};

/* Plans for a step. Cores and GPUs that this node lacks (as on a test cluster configured
 * with more than it has) become a note in the plan, and are no failure. Free the plan
 * with hvd_plan_finish. */
int hvd_binding_plan(const struct hvd_topology *topology,
                     const struct hvd_binding_step *step, struct hvd_plan *plan,
                     struct hvd_error *err);

/* Plans for a task that sees only its own GPUs (--gpus-per-task). The plan has one row,
 * for local_rank: the cpus of the task's mask that are near its GPU, not shared out among
 * ranks. step->rank_count is not used. */
int hvd_binding_plan_alone(const struct hvd_topology *topology,
                           const struct hvd_binding_step *step, int local_rank,
                           struct hvd_plan *plan, struct hvd_error *err);

/* Applies one row to the calling thread: cpus within the kernel's limit, the memory
 * policy, and the environment through setter (NULL: setenv). Tries all three and returns
 * the first failure; in any case *bound has the thread's cpus. A failure should be a
 * warning and not end the job. */
int hvd_binding_apply(const struct hvd_plan *plan, int local_rank, hvd_env_setter setter,
                      void *context, struct hvd_cpuset *bound, struct hvd_error *err);

#endif
