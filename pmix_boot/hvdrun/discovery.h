/* SPDX-License-Identifier: Apache-2.0 */
/* --host-discovery-script: runs a command every second that prints the hosts of the
 * job. */
#ifndef HVDRUN_DISCOVERY_H
#define HVDRUN_DISCOVERY_H

#include <stdbool.h>

#include "gpu_binding/base/error.h"

struct hvdrun_discovery;

/* Prepares the command, but does not run it yet. A host that is printed without a number
 * has default_slots slots (0: one). The caller owns *out. Returns HVD_ERR_ARG if the
 * command begins with the path of a file that cannot be run. */
int hvdrun_discovery_create(const char *command, int default_slots,
                            struct hvdrun_discovery **out, struct hvd_error *err);

/* Kills the command if it is running. NULL is allowed. */
void hvdrun_discovery_destroy(struct hvdrun_discovery *discovery);

/* Starts the command when it is due and reads its output; never blocks. Returns true when
 * a run has succeeded and hvdrun_discovery_slots has a new answer. A command that prints
 * 64 KiB or runs for 60 s is killed and has failed. Logs only the first failure; a failed
 * command runs again after a second, and the last answer stays. */
bool hvdrun_discovery_progress(struct hvdrun_discovery *discovery, long long now_ms);

/* Returns how many ranks this machine has room for by the last answer; -1: no answer yet.
 * Other hosts do not count. */
int hvdrun_discovery_slots(const struct hvdrun_discovery *discovery);

long long hvdrun_discovery_next_ms(const struct hvdrun_discovery *discovery);

/* Adds up the slots of this machine, whose name is `own`, in the output of a command,
 * which has words "HOST" or "HOST:N". Returns HVD_ERR_ARG for other words. Changes
 * text. */
int hvdrun_discovery_read(char *text, const char *own, int default_slots,
                          struct hvd_error *err);

#endif
