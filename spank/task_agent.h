/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares an agent: a task that is the only one of its node and starts the node's ranks
 * itself, as torchrun does. */
#ifndef HVD_SPANK_TASK_AGENT_H
#define HVD_SPANK_TASK_AGENT_H

#include <stdbool.h>

struct hvd_spank_task;

/* Finds out whether the task's program starts ranks itself, and sets task->is_agent and
 * task->launcher. If such a program is started several times on a node, warns the
 * user. */
void hvd_spank_task_agent_find(struct hvd_spank_task *task);

/* Lets the agent use all CPUs that the step has on this node, plans the binding of its
 * ranks, and exports the variables of the node, so that torchrun needs no options. Values
 * that the user set stay. */
void hvd_spank_task_agent_prepare(const struct hvd_spank_task *task);

/* Passes MASTER_ADDR and MASTER_PORT on to torchrun. */
void hvd_spank_task_agent_export_master(const struct hvd_spank_task *task);

#endif
