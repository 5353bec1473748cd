/* SPDX-License-Identifier: Apache-2.0 */
/* Sets the environment of a task. Variables that the user set stay, unless a word of
 * --hvd overrides them. */
#ifndef HVD_SPANK_TASK_ENVIRONMENT_H
#define HVD_SPANK_TASK_ENVIRONMENT_H

#include "gpu_binding/base/error.h"

struct hvd_spank_task;

/* Makes all GPUs of the step visible in every task, in the same order, unless the user
 * chose otherwise. Then hvd.local_rank() is the index of the rank's GPU, and ranks can
 * reach each other's GPU memory. */
void hvd_spank_task_show_gpus(const struct hvd_spank_task *task);

/* Puts the front end on PYTHONPATH; a batch script gets nothing else. Rank 0 tells the
 * user if there is another package of the same name. */
void hvd_spank_task_export_front_end(const struct hvd_spank_task *task);

/* Exports the variables of NCCL's files (nccl= or HVD_NCCL_FILES), and makes their
 * directory. Returns a negative status if the directory cannot be used. */
int hvd_spank_task_export_nccl(const struct hvd_spank_task *task, struct hvd_error *err);

/* Exports Horovod's variables and those of torch.distributed, hvd's own variables,
 * PYTHONPATH, and the files that --hvd names. */
void hvd_spank_task_export(const struct hvd_spank_task *task);

#endif
