/* SPDX-License-Identifier: Apache-2.0 */
/* Sets the variables that scripts of torch.distributed, Lightning, Accelerate and
 * DeepSpeed read. */
#ifndef HVD_SPANK_TASK_TORCH_H
#define HVD_SPANK_TASK_TORCH_H

struct hvd_spank_task;

/* Exports the numbers of the rank and of its node and, on several nodes, the network
 * interface for NCCL and Gloo. Variables that the user set stay. */
void hvd_spank_task_export_torch(const struct hvd_spank_task *task);

#endif
