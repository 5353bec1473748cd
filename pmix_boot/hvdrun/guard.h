/* SPDX-License-Identifier: Apache-2.0 */
/* A small process that cleans up after an hvdrun that was killed: ends the ranks with all
 * their children and removes the job's directory. Otherwise it does nothing. */
#ifndef HVDRUN_GUARD_H
#define HVDRUN_GUARD_H

#include <sys/types.h>

#include "gpu_binding/base/error.h"

struct hvdrun_guard {
    pid_t pid;
    int fd;
};

/* Before any thread is started. directory is copied. */
int hvdrun_guard_start(struct hvdrun_guard *guard, const char *directory,
                       struct hvd_error *err);

/* One more process group to end. */
void hvdrun_guard_watch(const struct hvdrun_guard *guard, pid_t group);

/* All is in order: the guard ends without doing anything. */
void hvdrun_guard_stop(struct hvdrun_guard *guard);

#endif
