/* SPDX-License-Identifier: Apache-2.0 */
/* The task's own row of the node's plan, made true and shown. */
#ifndef HVD_SPANK_TASK_BINDING_H
#define HVD_SPANK_TASK_BINDING_H

#include "spank/task_environment.h"

/* Plans for the node and applies the task's row; with --hvd=verbose the first task of the
 * node prints the binding. What goes wrong is a warning: the task then runs where Slurm put it. */
void hvd_spank_task_bind(const struct hvd_spank_task *task);

#endif
