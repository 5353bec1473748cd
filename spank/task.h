/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin inside a task, as the user, after Slurm's own binding and before exec. */
#ifndef HVD_SPANK_TASK_H
#define HVD_SPANK_TASK_H

#include "spank/launch.h"

struct spank_handle;

/* Binds the task, makes the step's GPUs visible and exports the environment. Returns 0, or a
 * negative status when the task must not start; the user has been told why. */
int hvd_task_prepare(struct hvd_launch *launch, struct spank_handle *spank);

#endif
