/* SPDX-License-Identifier: Apache-2.0 */
/* The words after the plugin's path in plugstack.conf, where the administrator configures
 * hvd, as a record. Pure. */
#ifndef HVD_SPANK_PLUGSTACK_H
#define HVD_SPANK_PLUGSTACK_H

#include <limits.h>

#include "gpu_binding/base/error.h"

struct hvd_spank_plugstack {
    int is_default_on; /* srun behaves as if --hvd had been typed */
    int keep_mpi; /* PMIx is switched on elsewhere (MpiDefault, cli_filter) */
    int timeout_s; /* how long PMIx waits for a node */
    char python_dir[PATH_MAX]; /* where the front end is; empty: nowhere */
    char topology[PATH_MAX]; /* plan on this hwloc XML, not on this machine; or empty */
};

/* A text with all words fits in here. */
#define HVD_SPANK_PLUGSTACK_LIST_BYTES 128

/* The defaults, with the front end in python_dir. */
void hvd_spank_plugstack_init(struct hvd_spank_plugstack *plugstack,
                              const char *python_dir);

/* Writes all words, as messages show them. */
void hvd_spank_plugstack_list(char text[HVD_SPANK_PLUGSTACK_LIST_BYTES]);

/* Applies one word. Returns 0, or HVD_ERR_ARG and leaves *plugstack alone. */
int hvd_spank_plugstack_parse(const char *word, struct hvd_spank_plugstack *plugstack,
                              struct hvd_error *err);

#endif
