/* SPDX-License-Identifier: Apache-2.0 */
/* Supervises the ranks of a job until it is over: forwards their output, passes on the
 * signals that hvdrun gets, and ends all ranks when one fails. */
#ifndef HVDRUN_SUPERVISE_H
#define HVDRUN_SUPERVISE_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "pmix_boot/hvdrun/lines.h"

struct hvd_error;
struct hvdrun_elastic;
struct hvd_rendezvous_service;

/* A pipe from a rank, non-blocking, and where its lines go. */
struct hvdrun_stream {
    int fd; /* -1: closed */
    char *label; /* owned; lines borrows it */
    char *copy_path; /* owned; NULL: no copy */
    struct hvdrun_lines lines;
};

enum {
    HVDRUN_STDOUT,
    HVDRUN_STDERR,
    HVDRUN_STREAMS
};

struct hvdrun_rank {
    pid_t pid; /* also its process group; 0: not started */
    bool is_over; /* the process has ended; it stays a zombie until the job is over */
    bool has_ended; /* it ended before hvdrun began to end the ranks */
    bool is_killed; /* by signal `value`; else it exited with status `value` */
    int value;
    struct hvdrun_stream streams[HVDRUN_STREAMS];
};

struct hvdrun_watch {
    struct hvdrun_rank *ranks;
    int count;
    int signal_fd; /* from hvdrun_supervise_signals */
    const struct hvd_rendezvous_service *service; /* is told of ranks that end */
    /* file in which ranks record which rank failed first (pmix_boot/cause.h) */
    const char *cause;
    struct hvdrun_elastic *elastic; /* NULL: a rank that fails ends the job */
};

/* Returns when all processes of the job have ended and all output is written. The result
 * is the exit code of the job: 0, or that of the rank that failed first (as ranks
 * recorded it, else the first that ended), which is 128 + signal if a signal killed it.
 * `cause` says in one sentence what happened; its status is 0 if nothing did. */
int hvdrun_supervise(struct hvdrun_watch *watch, struct hvd_error *cause);

/* Ends all ranks that were started, because another rank could not be started. */
void hvdrun_supervise_end(struct hvdrun_watch *watch);

/* Blocks the signals that hvdrun acts on (SIGCHLD, requests to end or to stop, SIGUSR1,
 * SIGUSR2) for this thread and those that it starts later, and ignores SIGPIPE. *before
 * gets the previous mask. Returns a non-blocking signalfd, which the caller closes, or a
 * negative status. */
int hvdrun_supervise_signals(sigset_t *before, struct hvd_error *err);

#endif
