/* SPDX-License-Identifier: Apache-2.0 */
/* The number of tasks: one per GPU where the user leaves it open, and never more. */
#ifndef HVD_SPANK_SRUN_TASKS_H
#define HVD_SPANK_SRUN_TASKS_H

#include <stdbool.h>

struct hvd_spank_plugin;

/* When all options are known: asks srun for one task per GPU, unless the user said how
 * many, and refuses more tasks on a node than it has GPUs, where srun can know that.
 * Returns 0, or a negative status with the reason in plugin->refusal. */
int hvd_spank_srun_tasks_settle(struct hvd_spank_plugin *plugin);

/* Refuses a step for which Slurm did not take the number that hvd asked for. */
int hvd_spank_srun_tasks_check(struct hvd_spank_plugin *plugin, int tasks, int nodes);

/* True when neither the user nor hvd said how many tasks: srun was not told of GPUs. */
bool hvd_spank_srun_tasks_are_open(const struct hvd_spank_plugin *plugin);

#endif
