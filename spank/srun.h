/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin inside srun, as the user: switches PMIx on, asks for one task per GPU, and
 * refuses what cannot work before anything starts. The functions are named after the
 * callbacks that they serve. */
#ifndef HVD_SPANK_SRUN_H
#define HVD_SPANK_SRUN_H

#include <stdbool.h>

#include "spank/srun_rendezvous.h"
#include "spank/srun_environment.h"
#include "spank/srun_options.h"

struct hvd_spank_plugin;
struct spank_handle;

struct hvd_spank_srun {
    struct hvd_spank_srun_options options;
    struct hvd_spank_srun_environment environment;
    int components; /* parts of a heterogeneous step, each with options of its own */
    int requested_tasks; /* per node, by hvd; 0: hvd asked for nothing */
    bool is_interactive; /* this srun gives the user a shell, and launches no ranks */
    bool was_launched;
    bool has_key; /* of the step, in the environment */
    struct hvd_spank_srun_rendezvous rendezvous;
};

/* Before options are read. */
void hvd_spank_srun_init(struct hvd_spank_plugin *plugin);

/* After plugin->options changed; may come several times, undoes what an earlier one
 * did. */
void hvd_spank_srun_option(struct hvd_spank_plugin *plugin);

/* All options are known, nothing is allocated. Ends srun with a message where the step
 * cannot work: Slurm ignores the failure of an optional plugin, and a plugin that is not
 * optional can stop a whole cluster. */
void hvd_spank_srun_init_post_opt(struct hvd_spank_plugin *plugin);

/* The step exists and is about to start. srun cannot be stopped any more: after a
 * message, a refusal travels to the tasks, which do not start. Returns 0, or a negative
 * status. */
int hvd_spank_srun_local_user_init(struct hvd_spank_plugin *plugin,
                                   struct spank_handle *spank);

/* srun ends. Explains a step that Slurm refused because of what hvd asked for. */
void hvd_spank_srun_exit(struct hvd_spank_plugin *plugin);

#endif
