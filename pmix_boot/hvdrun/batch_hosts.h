/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of hosts as LSF, PBS and Grid Engine write them. */
#ifndef HVDRUN_BATCH_HOSTS_H
#define HVDRUN_BATCH_HOSTS_H

#include "pmix_boot/hvdrun/hosts.h"

/* How a batch system lists hosts. */
enum hvdrun_batch_form {
    HVDRUN_HOST_PER_SLOT, /* each line is a host; it is repeated for each of its slots */
    HVDRUN_HOST_AND_SLOTS, /* each line begins with a host and its number of slots */
    HVDRUN_HOST_SLOT_PAIRS, /* any number of hosts, each followed by its slots */
};

/* Reads such a list. `source` names it in errors, which also name the line and the form
 * that was expected. Returns the number of hosts, each with all of its slots, in the
 * order in which they first appear. The caller frees *hosts. */
int hvdrun_batch_hosts_parse(const char *source, const char *text,
                             enum hvdrun_batch_form form, struct hvdrun_host **hosts,
                             struct hvd_error *err);

#endif
