/* SPDX-License-Identifier: Apache-2.0 */
/* Binds a task as the plan of its node says. */
#ifndef HVD_SPANK_TASK_BINDING_H
#define HVD_SPANK_TASK_BINDING_H

struct hvd_spank_task;

/* Plans for the node and applies the task's row; with --hvd=verbose the first task of the
 * node prints the binding. A failure is a warning: the task then keeps Slurm's
 * binding. */
void hvd_spank_task_bind(const struct hvd_spank_task *task);

/* Binds an agent, the task that starts the ranks of its node, to all CPUs that the step
 * has there, unless the user chose another binding. Divides the cores among the threads
 * of its `ranks` ranks, and leaves the plan for them in HVD_AGENT_PLAN; with
 * --hvd=verbose prints it. If `ranks` is 0 or negative, their number is unknown: the
 * numbers of threads stay unset, and the plan is for `expected` ranks. A failure is a
 * warning. */
void hvd_spank_task_bind_agent(const struct hvd_spank_task *task, int ranks,
                               int expected);

#endif
