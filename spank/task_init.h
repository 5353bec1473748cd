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
    bool is_isolated; /* each task sees only GPUs of its own, as the user wants */
};

/* Binds the task, makes the step's GPUs visible and exports the environment. Ends a task
 * that must not start; the user has been told why. */
void hvd_spank_task_init(struct hvd_spank_plugin *plugin, struct spank_handle *spank);

#endif
