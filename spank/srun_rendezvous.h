/* SPDX-License-Identifier: Apache-2.0 */
/* The rendezvous service of a step, which lives as long as srun does. */
#ifndef HVD_SPANK_SRUN_RENDEZVOUS_H
#define HVD_SPANK_SRUN_RENDEZVOUS_H

#include <sys/types.h>

#include "pmix_boot/rendezvous/start.h"

struct hvd_spank_plugin;

/* Zeroed: this srun has started no service. */
struct hvd_spank_srun_rendezvous {
    struct hvd_rendezvous_service service;
    pid_t owner; /* srun itself, not a child that it forked */
};

/* Before there is a step: srun copies the environment of each component of a
 * heterogeneous one before that component starts, so their service starts here, with the
 * second component. */
void hvd_spank_srun_rendezvous_prepare(struct hvd_spank_plugin *plugin);

/* The step exists: starts the service, or finds the one that the file of meet=FILE names,
 * and exports its address to the tasks. A lone task needs none, unless it is elastic.
 * Returns 0, or a negative status with the reason in plugin->refusal. */
int hvd_spank_srun_rendezvous_start(struct hvd_spank_plugin *plugin, int tasks);

/* Ends a service that this srun has started, and removes its file. */
void hvd_spank_srun_rendezvous_stop(struct hvd_spank_plugin *plugin);

#endif
