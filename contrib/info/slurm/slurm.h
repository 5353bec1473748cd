/* SPDX-License-Identifier: Apache-2.0 */
/* hvd-info --slurm: checks whether Slurm can load hvd's plugin and the other plugins of
 * plugstack.conf, for example after an upgrade. */
#ifndef HVD_INFO_SLURM_H
#define HVD_INFO_SLURM_H

#include "contrib/info/job.h"

/* Compares the releases of srun, slurmctld, slurmd on all nodes, and the plugins in
 * plugstack.conf. Prints the releases, each fault and its remedy, and a verdict. Returns
 * the exit status of hvd-info: 0 if all is well, 1 if something is wrong, 2 if it cannot
 * tell, for example without Slurm. */
int hvd_info_slurm(hvd_info_lookup lookup);

#endif
