/* SPDX-License-Identifier: Apache-2.0 */
/* The node as a task finds it. */
#ifndef HVD_SPANK_TASK_TOPOLOGY_H
#define HVD_SPANK_TASK_TOPOLOGY_H

struct hvd_spank_plugin;
struct hvd_spank_task;

/* Reads the topology into plugin->step, where it stays until exec, and compares the tasks with the
 * GPUs; looks for the front end. Returns 0, also where the topology cannot be read and the task keeps Slurm's binding, or
 * HVD_ERR_ARG when the task must not start. The first task of a node tells the user why. */
int hvd_spank_task_topology(struct hvd_spank_plugin *plugin,
                            const struct hvd_spank_task *task);

#endif
