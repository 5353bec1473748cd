/* SPDX-License-Identifier: Apache-2.0 */
/* All that the plugin remembers between the callbacks of one process. */
#ifndef HVD_SPANK_LAUNCH_H
#define HVD_SPANK_LAUNCH_H

#include <stdbool.h>

#include "gpu_binding/base/error.h"
#include "gpu_binding/topology.h"
#include "pmix_boot/elastic/start.h"
#include "spank/admin.h"
#include "spank/options.h"
#include "spank/settings.h"
#include "spank/srun_env.h"

/* In srun. */
struct hvd_srun {
    struct hvd_settings settings;
    struct hvd_srun_env env;
    struct hvd_error
        layout; /* why one task per GPU cannot be asked for; status 0: fine */
    int components; /* parts of a heterogeneous step, each with options of its own */
    int asked_tasks; /* per node, by hvd; 0: hvd asked for nothing */
    bool is_interactive; /* this srun gives the user a shell, and is no launch */
    bool was_launched;
    struct hvd_elastic_service elastic;
    pid_t elastic_owner; /* srun itself, not a child that it forked */
};

/* In slurmstepd, and inherited by its tasks. */
struct hvd_step {
    char gpus[512]; /* the node's GPU numbers of the step; empty: none, or unknown */
    char visible[4096]; /* CUDA_VISIBLE_DEVICES of the step; holds 64 MIG slices */
    bool has_open_tasks; /* their number was left to Slurm */
    bool is_bound_by_user; /* the user chose how Slurm binds */
    bool was_refused_by_srun; /* which has told the user why */
    bool is_first_node;
    bool is_shell; /* a batch script or salloc's shell: gets the front end alone */
    int tasks; /* on this node */
    bool has_topology;
    struct hvd_topology topology;
};

struct hvd_launch {
    struct hvd_admin admin;
    struct hvd_options options; /* zeroed, so not on, until the option is seen */
    struct hvd_error refusal; /* why this launch must not go on; status 0: it may */
    struct hvd_srun srun;
    struct hvd_step step;
};

#endif
