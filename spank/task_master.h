/* SPDX-License-Identifier: Apache-2.0 */
/* Where rank 0 serves the store of torch.distributed: MASTER_ADDR and MASTER_PORT of all
 * tasks.
 *
 *   rank 0     binds a port, tells the step's rendezvous service, hands the port to its program
 *   others     ask the service, and wait for rank 0 at most ten seconds */
#ifndef HVD_SPANK_TASK_MASTER_H
#define HVD_SPANK_TASK_MASTER_H

struct hvd_spank_task;

/* Sets the two variables, unless the user has set them. After HVD_RENDEZVOUS: without it,
 * only a lone task gets them. A failure is a sentence of one task on each node; the two
 * stay unset. */
void hvd_spank_task_export_master(const struct hvd_spank_task *task);

#endif
