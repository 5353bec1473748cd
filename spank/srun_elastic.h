/* SPDX-License-Identifier: Apache-2.0 */
/* The service of an elastic job, which lives as long as srun does. */
#ifndef HVD_SPANK_SRUN_ELASTIC_H
#define HVD_SPANK_SRUN_ELASTIC_H

#include "spank/launch.h"

/* The step exists: starts the service, or finds the one that the file of meet=FILE names; tasks
 * learn of it by the environment. Without --hvd=elastic does nothing. Returns 0, or a negative
 * status with the reason in launch->refusal. */
int hvd_srun_elastic_start(struct hvd_launch *launch, int tasks);

/* Ends a service that this srun has started, and removes its file. */
void hvd_srun_elastic_stop(struct hvd_launch *launch);

/* What an outer elastic step has left in the environment is not for this one. */
void hvd_srun_elastic_forget(void);

#endif
