/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's state, which it keeps between the callbacks of one process, and its
 * configuration by the administrator and the user. */
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
    /* zeroed, and therefore off, until Slurm passes the option */
    struct hvd_spank_options options;
    struct hvd_error refusal; /* why the step must not start; status 0: it may */
    char rendezvous_program[PATH_MAX]; /* path of hvd-rendezvous */
    struct hvd_spank_srun srun; /* used in srun */
    struct hvd_spank_job_step step; /* used in slurmstepd and its tasks */
};

/* Slurm calls this for each --hvd, as spank_option.cb. */
typedef int hvd_spank_option_callback(int value, const char *text, int is_remote);

/* Reads the words of plugstack.conf and registers --hvd. Returns 0, or HVD_ERR_STATE
 * after printing the reason; hvd then does nothing. */
int hvd_spank_plugin_init(struct hvd_spank_plugin *plugin, struct spank_handle *spank,
                          hvd_spank_option_callback *callback, int count, char **words);

/* Parses the text of --hvd, and applies the rules of the site. In srun, sbatch and
 * salloc, an invalid text is reported to the user and returns -1. In slurmstepd, where a
 * failure would drain the node, the reason goes to plugin->refusal, and the tasks do not
 * start. */
int hvd_spank_plugin_option(struct hvd_spank_plugin *plugin, const char *text,
                            bool is_remote);

#endif
