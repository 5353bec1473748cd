/* SPDX-License-Identifier: Apache-2.0 */
/* All that the plugin remembers between the callbacks of one process, and how
 * administrator and user configure it. */
#ifndef HVD_SPANK_PLUGIN_H
#define HVD_SPANK_PLUGIN_H

#include <limits.h>
#include <stdbool.h>

#include "gpu_binding/base/error.h"
#include "spank/options.h"
#include "spank/plugstack.h"
#include "spank/srun.h"
#include "spank/stepd.h"

struct hvd_spank_plugin {
    struct hvd_spank_plugstack plugstack;
    struct hvd_spank_options options; /* zeroed, so not on, until the option is seen */
    struct hvd_error refusal; /* why the step must not start; status 0: it may */
    char rendezvous_program[PATH_MAX]; /* hvd-rendezvous */
    struct hvd_spank_srun srun; /* in srun */
    struct hvd_spank_job_step step; /* in slurmstepd and its tasks */
};

/* Called by Slurm for each --hvd, as spank_option.cb. */
typedef int hvd_spank_option_callback(int value, const char *text, int is_remote);

/* Reads the words of plugstack.conf and registers --hvd. Returns 0, or HVD_ERR_STATE
 * after a message; hvd then does nothing. */
int hvd_spank_plugin_init(struct hvd_spank_plugin *plugin, struct spank_handle *spank,
                          hvd_spank_option_callback *callback, int count, char **words);

/* Takes the text of --hvd. A wrong text is the user's to see in srun, sbatch and salloc,
 * where it returns -1. In slurmstepd, where a failure would drain the node, it is kept
 * for the tasks to report. */
int hvd_spank_plugin_option(struct hvd_spank_plugin *plugin, const char *text,
                            bool is_remote);

#endif
