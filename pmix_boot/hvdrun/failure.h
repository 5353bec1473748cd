/* SPDX-License-Identifier: Apache-2.0 */
/* The first failure of a job, and the exit code that follows from it. */
#ifndef HVDRUN_FAILURE_H
#define HVDRUN_FAILURE_H

#include <stdbool.h>
#include <sys/types.h>

#include "gpu_binding/base/error.h"

struct hvdrun_failure {
    enum {
        HVDRUN_FAILURE_NONE,
        HVDRUN_FAILURE_EXIT, /* a rank exited with status `value` */
        HVDRUN_FAILURE_KILLED, /* a rank was killed by signal `value` */
        /* a rank exited with 0 too early, which made another exit with status `value` */
        HVDRUN_FAILURE_EARLY,
        /* a rank left the job, but did not exit, which made another exit with `value` */
        HVDRUN_FAILURE_LEFT,
        /* a rank hung, which made another exit with status `value` */
        HVDRUN_FAILURE_STUCK,
        HVDRUN_FAILURE_SIGNAL, /* signal `value` asked hvdrun to end */
    } kind;
    int value;
    int rank;
    pid_t pid;
    char text[256]; /* further details; may be empty */
    /* EARLY, LEFT: the rank that needed the failed one, and the operation in which it
     * was; "" if that is not known */
    int waiter;
    char operation[160];
};

/* Records that a rank ended; value 0 is not a failure. The first failure is kept, except
 * that a killed rank replaces a rank that exited with an error, because it explains that
 * exit. */
void hvdrun_failure_add_end(struct hvdrun_failure *failure, int rank, pid_t pid,
                            bool is_killed, int value);

/* Returns 0 to 255, as a shell would report it. */
int hvdrun_failure_exit_code(const struct hvdrun_failure *failure);

/* Writes one sentence to err. Leaves err unchanged if there is no failure. */
void hvdrun_failure_describe(const struct hvdrun_failure *failure, int ranks,
                             struct hvd_error *err);

#endif
