/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts that a batch system has given to this job: LSF, PBS or Grid Engine. Slurm's
 * are left to srun. */
#ifndef HVDRUN_ALLOCATION_H
#define HVDRUN_ALLOCATION_H

#include "pmix_boot/hvdrun/options.h"

/* Makes the hosts of the batch job those of *options, and their slots the number of ranks
 * unless -np gives one. Takes only as many hosts as the ranks need. Does nothing if the
 * user has named hosts, in a Slurm job, and in a process that a launcher has started.
 * `environment` is a list like environ. */
int hvdrun_allocation_apply(struct hvdrun_options *options,
                            const char *const *environment, struct hvd_error *err);

#endif
