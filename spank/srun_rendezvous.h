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
    pid_t owner; /* srun itself, to tell it from a child that it forked */
};

/* Refuses a step with --async, of Slurm 26.05, that needs the service: srun ends before
 * its tasks, and the service ends with srun. If the tasks need it only for MASTER_ADDR,
 * tells the user. Call it when the options are known. Returns 0, or a negative status
 * with the text in plugin->refusal. */
int hvd_spank_srun_rendezvous_check(struct hvd_spank_plugin *plugin);

/* Starts the service of a heterogeneous step early, at its second component. It cannot
 * wait until the step exists, because srun copies the environment for each component
 * before that component starts. */
void hvd_spank_srun_rendezvous_prepare(struct hvd_spank_plugin *plugin);

/* Runs when the step exists. Starts the service, or finds the one that the file of
 * meet=FILE names, and exports its address to the tasks. A single task needs no service
 * unless the job is elastic. Returns 0, or a negative status with the reason in
 * plugin->refusal. */
int hvd_spank_srun_rendezvous_start(struct hvd_spank_plugin *plugin, int tasks);

/* Stops a service that this srun has started, and removes its file. */
void hvd_spank_srun_rendezvous_stop(struct hvd_spank_plugin *plugin);

#endif
