/* SPDX-License-Identifier: Apache-2.0 */
/* The service of an elastic job, which lives as long as srun does. */
#ifndef HVD_SPANK_SRUN_ELASTIC_H
#define HVD_SPANK_SRUN_ELASTIC_H

#include <sys/types.h>

#include "pmix_boot/rendezvous/start.h"

struct hvd_spank_plugin;

/* Zeroed: this srun has started no service. */
struct hvd_spank_srun_elastic {
    struct hvd_rendezvous_service service;
    pid_t owner; /* srun itself, not a child that it forked */
};

/* The step exists: starts the service, or finds the one that the file of meet=FILE names, and
 * exports its address to the tasks. Without --hvd=elastic does nothing. Returns 0, or a
 * negative status with the reason in plugin->refusal. */
int hvd_spank_srun_elastic_start(struct hvd_spank_plugin *plugin, int tasks);

/* Ends a service that this srun has started, and removes its file. */
void hvd_spank_srun_elastic_stop(struct hvd_spank_plugin *plugin);

#endif
