/* SPDX-License-Identifier: Apache-2.0 */
/* The service of an elastic job, which lives as long as srun does. */
#ifndef HVD_SPANK_SRUN_ELASTIC_H
#define HVD_SPANK_SRUN_ELASTIC_H

#include "spank/plugin.h"

/* The step exists: starts the service, or finds the one that the file of meet=FILE names; tasks
 * learn of it by the environment. Without --hvd=elastic does nothing. Returns 0, or a negative
 * status with the reason in plugin->refusal. */
int hvd_spank_srun_elastic_start(struct hvd_spank_plugin *plugin, int tasks);

/* Ends a service that this srun has started, and removes its file. */
void hvd_spank_srun_elastic_stop(struct hvd_spank_plugin *plugin);

#endif
