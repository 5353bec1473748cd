/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts that a user names, and how many ranks each takes. */
#ifndef HVDRUN_HOSTS_H
#define HVDRUN_HOSTS_H

#include <stdbool.h>

#include "gpu_binding/base/error.h"

struct hvdrun_host {
    char name[256];
    int slots; /* 1 or more */
};

/* Reads "host:4,other:2,third" (one slot where no number is). *hosts is the caller's to
 * free; returns their number, or HVD_ERR_ARG with the word that is wrong. */
int hvdrun_hosts_parse(const char *text, struct hvdrun_host **hosts,
                       struct hvd_error *err);

/* Reads lines "host slots=4", "host:4" or "host"; # begins a comment. *text, in the form
 * that parse takes, is the caller's to free. */
int hvdrun_hostfile_read(const char *path, char **text, struct hvd_error *err);

/* Whether name is this machine, called own. */
bool hvdrun_host_is_local(const char *name, const char *own);

#endif
