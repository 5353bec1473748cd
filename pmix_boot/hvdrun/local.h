/* SPDX-License-Identifier: Apache-2.0 */
/* A job whose ranks all run on this machine. */
#ifndef HVDRUN_LOCAL_H
#define HVDRUN_LOCAL_H

#include "pmix_boot/hvdrun/options.h"

/* Runs it to its end; signals of the process and its children are this call's until then.
 * Returns the exit code for the shell. err says why, when it is not 0. */
int hvdrun_local_run(const struct hvdrun_options *options, const char *host,
                     struct hvd_error *err);

#endif
