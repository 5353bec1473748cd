/* SPDX-License-Identifier: Apache-2.0 */
/* Kills a rank of a Slurm step that is stopped or hangs. srun cannot end a single task,
 * so a new step in the rank's job, on the rank's node, sends SIGKILL:
 *
 *   service ──> hvd-rendezvous kill-by-srun ──> srun ──> hvd-rendezvous kill
 *               60 s at most                             on the node */
#ifndef HVD_RENDEZVOUS_SLURM_KILL_H
#define HVD_RENDEZVOUS_SLURM_KILL_H

#include "pmix_boot/rendezvous/message.h"

/* Starts to kill in the background and never blocks; the log tells the outcome. A process
 * outside Slurm jobs, or with an unknown start time, is not killed, which is logged as
 * well. */
void hvd_rendezvous_slurm_kill_begin(const struct hvd_rendezvous_process *process,
                                     int rank);

/* The programs "hvd-rendezvous kill-by-srun RANK JOB NODE PID STARTED" and
 * "hvd-rendezvous kill PID STARTED". arguments: those after the first, NULL-terminated.
 * Both return an exit status. */
int hvd_rendezvous_slurm_kill_by_srun(char **arguments);
int hvd_rendezvous_slurm_kill_here(char **arguments);

#endif
