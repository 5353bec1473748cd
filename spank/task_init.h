/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin inside a task, as the user, after Slurm's own binding and before exec. */
#ifndef HVD_SPANK_TASK_INIT_H
#define HVD_SPANK_TASK_INIT_H

#include <stdbool.h>

#include "spank/placement.h"

struct hvd_spank_plugin;
struct spank_handle;

struct hvd_spank_task {
    struct spank_handle *spank;
    const struct hvd_spank_plugin *plugin;
    int rank;
    struct hvd_spank_placement placement;
    bool has_gpus; /* Slurm gave GPUs to the step */
    /* each task sees only its own GPUs, because the user asked for it */
    bool is_isolated;
    /* the program, if it starts ranks itself, such as "torchrun"; otherwise NULL */
    const char *launcher;
    bool is_agent; /* the task is the only one of its node, and starts the ranks there */
    bool is_alone; /* torchrun --standalone: nodes do not join one another */
    /* ranks per node on torchrun's command line, as hvd_spank_launcher_ranks returns
     * it */
    int typed_ranks;
};

/* Binds the task, makes the step's GPUs visible and exports the environment. If the task
 * must not start, ends it; the user has been told the reason. */
void hvd_spank_task_init(struct hvd_spank_plugin *plugin, struct spank_handle *spank);

#endif
