/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin puts into the environment of a task. What the user set stays, but for
 * what --hvd says itself. */
#ifndef HVD_SPANK_TASK_ENVIRONMENT_H
#define HVD_SPANK_TASK_ENVIRONMENT_H

#include <stdbool.h>

#include "spank/placement.h"
#include "spank/plugin.h"

struct spank_handle;

struct hvd_spank_task {
    struct spank_handle *spank;
    const struct hvd_spank_plugin *plugin;
    int rank;
    struct hvd_spank_placement placement;
    bool has_gpus; /* Slurm gave GPUs to the step */
    bool is_isolated; /* Slurm gave each task GPUs of its own, at the user's wish */
};

/* Sets a variable of the task; with overwrite false one that exists stays, which is no
 * failure. A hvd_env_setter whose context is the spank handle. */
int hvd_spank_task_setenv(void *spank, const char *name, const char *value,
                          bool overwrite);

/* All GPUs of the step visible in every task, in one order: hvd.local_rank() is the index,
 * and neighbours reach each other's memory. Not where the user wanted otherwise. */
void hvd_spank_task_show_gpus(const struct hvd_spank_task *task);

/* The front end on PYTHONPATH: all that a batch script gets. Rank 0 tells of a rival of it. */
void hvd_spank_task_export_front_end(const struct hvd_spank_task *task);

/* Horovod's variables, the contract with the library, PYTHONPATH, and the files that --hvd
 * names. */
void hvd_spank_task_export(const struct hvd_spank_task *task);

#endif
