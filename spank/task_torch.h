/* SPDX-License-Identifier: Apache-2.0 */
/* What scripts of torch.distributed, Lightning, Accelerate and DeepSpeed find in the
 * environment of a task. */
#ifndef HVD_SPANK_TASK_TORCH_H
#define HVD_SPANK_TASK_TORCH_H

struct hvd_spank_task;

/* The numbers of the rank and of its node; on several nodes, the network interface for
 * NCCL and Gloo. What the user set stays. */
void hvd_spank_task_export_torch(const struct hvd_spank_task *task);

#endif
