/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin inside slurmstepd, before its tasks exist. These functions never fail the
 * step, because a failure would drain the node; they keep a reason to refuse it in
 * plugin->refusal. They are named after the callbacks that they serve. */
#ifndef HVD_SPANK_STEPD_H
#define HVD_SPANK_STEPD_H

#include <stdbool.h>

#include "gpu_binding/topology.h"

struct hvd_spank_plugin;
struct spank_handle;

/* The job step, as slurmstepd knows it on this node; its tasks inherit this. */
struct hvd_spank_job_step {
    char gpus[512]; /* the node's GPU numbers of the step; empty: none, or unknown */
    char visible[4096]; /* CUDA_VISIBLE_DEVICES of the step; room for 64 MIG slices */
    bool has_open_tasks; /* neither the user nor hvd chose the number of tasks */
    bool is_bound_by_user; /* the user chose Slurm's CPU binding */
    bool was_refused_by_srun; /* srun has told the user why */
    bool is_first_node;
    bool is_shell; /* a batch script or salloc's shell, which gets the front end only */
    int tasks; /* number of tasks on this node */
    bool has_topology; /* topology has been read, which only tasks do */
    struct hvd_topology topology;
};

/* Runs as root. Copies the variables that Slurm will narrow for each task. Switches hvd
 * off in batch, interactive and extern steps. */
void hvd_spank_stepd_init_post_opt(struct hvd_spank_plugin *plugin,
                                   struct spank_handle *spank);

/* Runs as the user, but the real user is still root. Reports an invalid --hvd to the
 * user. Opens no files and does not use hwloc, which loads plugins: the tasks do both. */
void hvd_spank_stepd_user_init(struct hvd_spank_plugin *plugin,
                               struct spank_handle *spank);

#endif
