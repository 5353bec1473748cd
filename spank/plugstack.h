/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the words after the plugin's path in plugstack.conf, by which the administrator
 * configures hvd. Pure. */
#ifndef HVD_SPANK_PLUGSTACK_H
#define HVD_SPANK_PLUGSTACK_H

#include <limits.h>

#include "gpu_binding/base/error.h"
#include "spank/site_rules.h"

struct hvd_spank_plugstack {
    int is_default_on; /* srun behaves as if --hvd had been typed */
    /* leave srun's --mpi alone: the cluster selects PMIx itself (MpiDefault,
     * cli_filter) */
    int keep_mpi;
    int timeout_s; /* how long PMIx waits for a node */
    /* directory of the package horovod; empty: it is not put on PYTHONPATH */
    char python_dir[PATH_MAX];
    /* hwloc XML file to plan for instead of the machine itself; or empty */
    char topology[PATH_MAX];
    struct hvd_spank_site_rules rules;
};

/* Buffer size for the list of all words. */
#define HVD_SPANK_PLUGSTACK_LIST_BYTES 256

/* Sets the defaults; the package horovod is in python_dir. */
void hvd_spank_plugstack_init(struct hvd_spank_plugstack *plugstack,
                              const char *python_dir);

/* Writes the list of all words for messages. */
void hvd_spank_plugstack_list(char text[HVD_SPANK_PLUGSTACK_LIST_BYTES]);

/* Applies one word. Returns 0, or HVD_ERR_ARG and leaves *plugstack unchanged. */
int hvd_spank_plugstack_parse(const char *word, struct hvd_spank_plugstack *plugstack,
                              struct hvd_error *err);

#endif
