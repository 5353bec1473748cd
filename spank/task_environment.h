/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin puts into the environment of a task. What the user set stays, except
 * where a word of --hvd says otherwise. */
#ifndef HVD_SPANK_TASK_ENVIRONMENT_H
#define HVD_SPANK_TASK_ENVIRONMENT_H

struct hvd_spank_task;

/* Makes all GPUs of the step visible in every task, in one order, unless the user wants
 * otherwise: hvd.local_rank() is the index, and ranks reach each other's GPU memory. */
void hvd_spank_task_show_gpus(const struct hvd_spank_task *task);

/* Puts the front end on PYTHONPATH, which is all that a batch script gets. Rank 0 tells
 * the user of another package with the same name. */
void hvd_spank_task_export_front_end(const struct hvd_spank_task *task);

/* Horovod's variables and those of torch.distributed, the contract with the library,
 * PYTHONPATH, and the files that --hvd names. */
void hvd_spank_task_export(const struct hvd_spank_task *task);

#endif
