/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin inside slurmstepd, before its tasks exist. Nothing here fails the step: a
 * failure would drain the node. A reason to refuse it is kept in plugin->refusal. The
 * functions are named after the callbacks that they serve. */
#ifndef HVD_SPANK_STEPD_H
#define HVD_SPANK_STEPD_H

#include <stdbool.h>

#include "gpu_binding/topology.h"

struct hvd_spank_plugin;
struct spank_handle;

/* The job step, as slurmstepd knows it on this node; its tasks inherit this. */
struct hvd_spank_job_step {
    char gpus[512]; /* the node's GPU numbers of the step; empty: none, or unknown */
    char visible[4096]; /* CUDA_VISIBLE_DEVICES of the step; holds 64 MIG slices */
    bool has_open_tasks; /* neither user nor hvd chose their number */
    bool is_bound_by_user; /* the user chose how Slurm binds */
    bool was_refused_by_srun; /* srun has told the user why */
    bool is_first_node;
    bool is_shell; /* a batch script or salloc's shell, which gets the front end only */
    int tasks; /* on this node */
    bool has_topology; /* in a task */
    struct hvd_topology topology;
};

/* As root: copies what Slurm will narrow for each task. Switches hvd off in batch,
 * interactive and extern steps. */
void hvd_spank_stepd_init_post_opt(struct hvd_spank_plugin *plugin,
                                   struct spank_handle *spank);

/* As the user, but with the real user root: tells the user what is wrong with the option.
 * Files, and hwloc, which loads plugins, are left to the tasks. */
void hvd_spank_stepd_user_init(struct hvd_spank_plugin *plugin,
                               struct spank_handle *spank);

#endif
