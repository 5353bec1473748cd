/* SPDX-License-Identifier: Apache-2.0 */
/* --host-discovery-script: a command that prints the hosts of the job, run each
 * second. */
#ifndef HVDRUN_DISCOVERY_H
#define HVDRUN_DISCOVERY_H

#include <stdbool.h>

#include "gpu_binding/base/error.h"

struct hvdrun_discovery;

/* default_slots: of a host that is printed without a number; 0: one. The caller owns
 * *out. HVD_ERR_ARG when the command begins with the path of a file that cannot be
 * run. */
int hvdrun_discovery_create(const char *command, int default_slots,
                            struct hvdrun_discovery **out, struct hvd_error *err);

/* Ends a command that runs. NULL is fine. */
void hvdrun_discovery_destroy(struct hvdrun_discovery *discovery);

/* Starts the command when it is time, and reads what it prints; never blocks. True when
 * it has ended well and slots has an answer. A failure is said once, and it is asked
 * again. */
bool hvdrun_discovery_progress(struct hvdrun_discovery *discovery, long long now_ms);

/* Ranks that this machine has room for, by the last answer; other hosts do not count. */
int hvdrun_discovery_slots(const struct hvdrun_discovery *discovery);

long long hvdrun_discovery_next_ms(const struct hvdrun_discovery *discovery);

/* Ranks for this machine, called own, in what a command printed: lines "HOST" or
 * "HOST:N". HVD_ERR_ARG for a line that is neither. Changes text. Pure. */
int hvdrun_discovery_read(char *text, const char *own, int default_slots,
                          struct hvd_error *err);

#endif
