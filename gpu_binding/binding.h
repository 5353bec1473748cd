/* SPDX-License-Identifier: Apache-2.0 */
/* All that a launcher needs, in the order in which it needs it; shared by the Slurm
 * plugin and hvdrun. Needs no other header of this folder.
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

/* What is known of a step. Zeroed, but for rank_count: all GPUs and cpus of this node. */
struct hvd_binding_step {
    int rank_count; /* ranks on this node */
    const char *cores; /* Slurm's S_STEP_ALLOC_CORES; NULL: no such limit */
    const struct hvd_cpuset *cpus; /* a further limit; NULL: none */
    /* what the launcher bound a task to; NULL: unknown */
    const struct hvd_cpuset *task_mask;
    const char *gpu_numbers; /* SLURM_STEP_GPUS; NULL: unknown */
    const char *visible_devices; /* CUDA_VISIBLE_DEVICES; NULL: unset */
    int gpu_count; /* how many, when no list names them; 0: all of the node */
    struct hvd_plan_options options;
};

/* Plans for a step. Cores and GPUs that this node lacks (a test cluster that counts more
 * than there is) are a note in the plan, not a failure. Undo with hvd_plan_finish. */
int hvd_binding_plan(const struct hvd_topology *topology,
                     const struct hvd_binding_step *step, struct hvd_plan *plan,
                     struct hvd_error *err);

/* For a task that sees only GPUs of its own (--gpus-per-task): one row, for local_rank,
 * near its GPU and within its own mask, not sliced. step->rank_count is not used. */
int hvd_binding_plan_alone(const struct hvd_topology *topology,
                           const struct hvd_binding_step *step, int local_rank,
                           struct hvd_plan *plan, struct hvd_error *err);

/* Applies one row to the calling thread: cpus within what the kernel grants, memory, then
 * the environment through setter (NULL: setenv). Tries all three; returns the first
 * failure, and *bound says where the thread is in any case. A failure to bind is worth a
 * warning, not the job. */
int hvd_binding_apply(const struct hvd_plan *plan, int local_rank, hvd_env_setter setter,
                      void *context, struct hvd_cpuset *bound, struct hvd_error *err);

#endif
