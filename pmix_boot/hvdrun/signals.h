/* SPDX-License-Identifier: Apache-2.0 */
/* hvdrun's signals as a descriptor to read from. */
#ifndef HVDRUN_SIGNALS_H
#define HVDRUN_SIGNALS_H

#include <signal.h>

#include "gpu_binding/base/error.h"

/* Blocks what hvdrun acts on (ends of children, requests to end or to stop, SIGUSR1 and 2)
 * for this thread and those that it starts later, ignores SIGPIPE, and reports the mask from
 * before. Returns the descriptor, the caller's to close, or a negative status. */
int hvdrun_signals_open(sigset_t *before, struct hvd_error *err);

#endif
