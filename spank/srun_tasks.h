/* SPDX-License-Identifier: Apache-2.0 */
/* The number of tasks: one per GPU where the user leaves it open, and never more. */
#ifndef HVD_SPANK_SRUN_TASKS_H
#define HVD_SPANK_SRUN_TASKS_H

#include "spank/launch.h"

/* When all options are known: asks srun for one task per GPU, unless the user said how many.
 * Returns 0, or a negative status with the reason in launch->refusal. */
int hvd_srun_ask_tasks(struct hvd_launch *launch);

/* Refuses more tasks on a node than it has GPUs, where srun can know that. */
int hvd_srun_check_gpus(struct hvd_launch *launch, int tasks, int nodes);

/* Refuses a step for which Slurm did not take the number that hvd asked for. */
int hvd_srun_check_answer(struct hvd_launch *launch, int tasks, int nodes);

/* True when neither the user nor hvd said how many tasks: srun was not told of GPUs. */
bool hvd_srun_has_open_tasks(const struct hvd_launch *launch);

#endif
