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
        HVDRUN_FAILURE_EXIT, /* a rank returned value */
        HVDRUN_FAILURE_KILLED, /* a rank was ended by signal value */
        /* a rank returned 0 while others needed it, which returned value */
        HVDRUN_FAILURE_EARLY,
        /* a rank did not end, and others that needed it returned value */
        HVDRUN_FAILURE_STUCK,
        HVDRUN_FAILURE_SIGNAL, /* hvdrun was asked for the end by signal value */
    } kind;
    int value;
    int rank;
    pid_t pid;
    char text[256]; /* what is known about it besides; may be empty */
};

/* A rank ended. Keeps what is known already, but a rank that was killed explains ranks
 * that return a failure at the same moment. */
void hvdrun_failure_add_end(struct hvdrun_failure *failure, int rank, pid_t pid,
                            bool is_killed, int value);

/* 0 ... 255, as a shell would report it. */
int hvdrun_failure_exit_code(const struct hvdrun_failure *failure);

/* One sentence; err is left alone when there is no failure. */
void hvdrun_failure_describe(const struct hvdrun_failure *failure, int ranks,
                             struct hvd_error *err);

#endif
