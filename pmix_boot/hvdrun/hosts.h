/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts that a user names, and how many ranks each takes. */
#ifndef HVDRUN_HOSTS_H
#define HVDRUN_HOSTS_H

#include <stdbool.h>

#include "gpu_binding/base/error.h"

enum {
    HVDRUN_MOST_SLOTS = 65536 /* of one host */
};

struct hvdrun_host {
    char name[256];
    int slots; /* 1 or more */
};

/* Reads "host:4,other:2,third"; a host without a number has one slot. Returns the number
 * of hosts; HVD_ERR_ARG names the wrong word. The caller frees *hosts. */
int hvdrun_hosts_parse(const char *text, struct hvdrun_host **hosts,
                       struct hvd_error *err);

/* Reads a file with lines "host slots=4", "host:4" or "host"; # begins a comment. *text
 * gets the hosts in the form that hvdrun_hosts_parse reads; the caller frees it. */
int hvdrun_hostfile_read(const char *path, char **text, struct hvd_error *err);

/* Returns whether `name` is this machine, whose name is `own`. */
bool hvdrun_host_is_local(const char *name, const char *own);

#endif
