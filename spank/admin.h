/* SPDX-License-Identifier: Apache-2.0 */
/* What the admin wrote after the plugin's path in plugstack.conf, as a record. Pure. */
#ifndef HVD_SPANK_ADMIN_H
#define HVD_SPANK_ADMIN_H

#include <limits.h>

#include "gpu_binding/base/error.h"

struct hvd_admin {
    int is_default_on; /* srun behaves as if --hvd had been typed */
    int keep_mpi; /* PMIx is switched on elsewhere (MpiDefault, cli_filter) */
    int timeout_s; /* how long PMIx waits for a node */
    const char *elastic_program; /* path of hvd-elastic; borrowed */
    char python_dir[PATH_MAX]; /* where the front end is; empty: nowhere */
    char topology[PATH_MAX]; /* plan on this hwloc XML, not on this machine; or empty */
};

/* A text with all words fits in here. */
#define HVD_ADMIN_LIST_BYTES 128

/* The defaults, with the front end in python_dir. */
void hvd_admin_init(struct hvd_admin *admin, const char *python_dir);

/* Writes every word that is known, as messages show them. */
void hvd_admin_list(char text[HVD_ADMIN_LIST_BYTES]);

/* Applies one word of hvd_admin_list. Returns 0, or HVD_ERR_ARG and leaves *admin alone. */
int hvd_admin_parse(const char *word, struct hvd_admin *admin, struct hvd_error *err);

#endif
