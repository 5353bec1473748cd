/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin inside srun, as the user: switches PMIx on, asks for one task per GPU, and
 * refuses a step that cannot work before anything starts. The functions are named after
 * the callbacks that they serve. */
#ifndef HVD_SPANK_SRUN_H
#define HVD_SPANK_SRUN_H

#include <stdbool.h>

#include "spank/srun_rendezvous.h"
#include "spank/srun_command.h"
#include "spank/srun_environment.h"
#include "spank/srun_options.h"

struct hvd_spank_plugin;
struct spank_handle;

struct hvd_spank_srun {
    struct hvd_spank_srun_options options;
    struct hvd_spank_srun_environment environment;
    /* number of components of the heterogeneous step that were read so far */
    int components;
    bool is_first_on; /* --hvd holds for the first component */
    int requested_tasks; /* tasks per node that hvd has requested; 0: none */
    struct hvd_spank_srun_command command;
    bool has_agents; /* hvd has requested one task per node, which starts the ranks */
    bool is_interactive; /* this srun gives the user a shell, and launches no ranks */
    bool was_launched;
    bool has_key; /* the key of the step is in the environment */
    struct hvd_spank_srun_rendezvous rendezvous;
};

/* Runs before srun reads its options. */
void hvd_spank_srun_init(struct hvd_spank_plugin *plugin);

/* Runs whenever plugin->options has changed, and first undoes what it did before. */
void hvd_spank_srun_option(struct hvd_spank_plugin *plugin);

/* Runs when all options are known and nothing is allocated. Ends srun with a message if
 * the step cannot work: Slurm would ignore a failure of an optional plugin, and a
 * required plugin can stop a whole cluster. */
void hvd_spank_srun_init_post_opt(struct hvd_spank_plugin *plugin);

/* Runs when the step exists and is about to start. srun can no longer be stopped: a
 * refusal is printed and passed on to the tasks, which then do not start. Returns 0, or a
 * negative status. */
int hvd_spank_srun_local_user_init(struct hvd_spank_plugin *plugin,
                                   struct spank_handle *spank);

/* Runs when srun ends: stops the service. If Slurm never launched the step, tells the
 * user which number of tasks hvd had requested, since that may be the reason. */
void hvd_spank_srun_exit(struct hvd_spank_plugin *plugin);

#endif
