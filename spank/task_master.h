/* SPDX-License-Identifier: Apache-2.0 */
/* Sets MASTER_ADDR and MASTER_PORT in all tasks: the address at which rank 0 serves the
 * store of torch.distributed. Sets JAX_COORDINATOR_ADDRESS and JAX_COORDINATOR_PORT for
 * JAX.
 *
 *   rank 0     binds two ports, or one of HVD_PORT_RANGE if that is set; tells the step's
 *              rendezvous service if there are other ranks; and keeps the ports open for
 *              its program
 *   others     ask the service, and wait for rank 0, usually at most ten seconds */
#ifndef HVD_SPANK_TASK_MASTER_H
#define HVD_SPANK_TASK_MASTER_H

struct hvd_spank_task;

/* Sets these variables, except those that the user has set; sets none if the user has set
 * both MASTER_ADDR and MASTER_PORT. Call it after HVD_RENDEZVOUS has been set: without
 * it, a step of several tasks gets no variables. On failure, the task prints the reason,
 * and all variables stay unset. */
void hvd_spank_task_export_master(const struct hvd_spank_task *task);

#endif
