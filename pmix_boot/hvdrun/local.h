/* SPDX-License-Identifier: Apache-2.0 */
/* A job whose ranks all run on this machine. */
#ifndef HVDRUN_LOCAL_H
#define HVDRUN_LOCAL_H

#include "pmix_boot/hvdrun/options.h"

/* Runs the job to its end. Until then this call handles the signals and the children of
 * the process. Returns the exit code for the shell; if that is not 0, err says why. */
int hvdrun_local_run(const struct hvdrun_options *options, const char *host,
                     struct hvd_error *err);

#endif
