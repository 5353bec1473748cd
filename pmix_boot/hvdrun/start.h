/* SPDX-License-Identifier: Apache-2.0 */
/* Starts one rank as a process of its own, in a process group of its own. */
#ifndef HVDRUN_START_H
#define HVDRUN_START_H

#include <signal.h>
#include <sys/types.h>

#include "gpu_binding/base/error.h"
#include "pmix_boot/hvdrun/string_list.h"

struct hvd_plan;

struct hvdrun_start {
    int rank;
    char *const *command; /* looked up in PATH; ends with NULL */
    const struct hvdrun_string_list *environment;
    const struct hvd_plan *plan; /* what to bind to; NULL: do not bind */
    const sigset_t *signal_mask; /* the mask to start with */
    int input; /* these three become the standard streams */
    int output;
    int error;
};

/* Returns once the command runs, or could not be started. *pid is the leader of its
 * process group; the kernel kills it when the calling thread ends. After a failure,
 * *exit_code is what a shell would return (126, 127). */
int hvdrun_start(const struct hvdrun_start *start, pid_t *pid, int *exit_code,
                 struct hvd_error *err);

#endif
