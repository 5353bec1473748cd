/* SPDX-License-Identifier: Apache-2.0 */
/* The job's temporary directory, and a small process that cleans up after an hvdrun that
 * was killed: it ends the ranks with all their children and removes the directory. */
#ifndef HVDRUN_WATCHDOG_H
#define HVDRUN_WATCHDOG_H

#include <limits.h>
#include <sys/types.h>

#include "gpu_binding/base/error.h"

struct hvdrun_watchdog {
    pid_t pid; /* 0: not started */
    int fd;
    char directory[PATH_MAX]; /* open to this user only, in TMPDIR or /tmp */
};

/* Makes the directory and starts the process. Call it before any thread is started. */
int hvdrun_watchdog_start(struct hvdrun_watchdog *watchdog, struct hvd_error *err);

/* Adds a process group that the watchdog ends if hvdrun is killed. */
void hvdrun_watchdog_add(const struct hvdrun_watchdog *watchdog, pid_t group);

/* Removes the directory with its contents, and ends the watchdog; the ranks are left
 * alone. Does nothing if the watchdog was not started. */
void hvdrun_watchdog_stop(struct hvdrun_watchdog *watchdog);

#endif
