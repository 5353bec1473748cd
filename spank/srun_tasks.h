/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the number of tasks: one per GPU if the user leaves it open, and never more. */
#ifndef HVD_SPANK_SRUN_TASKS_H
#define HVD_SPANK_SRUN_TASKS_H

#include <stdbool.h>

struct hvd_spank_plugin;

/* Runs when all options are known. Asks srun for one task per GPU unless the user chose a
 * number, and refuses more tasks on a node than it has GPUs, if srun can know that.
 * Returns 0, or a negative status with the reason in plugin->refusal. */
int hvd_spank_srun_tasks_settle(struct hvd_spank_plugin *plugin);

/* Refuses a step in which Slurm starts another number of tasks than hvd requested, and an
 * elastic step of a program that starts ranks itself. */
int hvd_spank_srun_tasks_check(struct hvd_spank_plugin *plugin, int tasks, int nodes);

/* True if neither the user nor hvd chose the number of tasks, because srun was not told
 * of GPUs. */
bool hvd_spank_srun_tasks_are_open(const struct hvd_spank_plugin *plugin);

#endif
