/* SPDX-License-Identifier: Apache-2.0 */
/* Supervises the ranks of a job until it is over: forwards their output and the signals
 * to hvdrun, and ends all ranks when one fails. */
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
    char *label; /* owned; what lines borrows */
    char *copy_path; /* owned; NULL: no copy */
    struct hvdrun_lines lines;
};

enum {
    HVDRUN_STDOUT,
    HVDRUN_STDERR,
    HVDRUN_STREAMS
};

struct hvdrun_rank {
    pid_t pid; /* also its process group; 0: was not started */
    bool is_over; /* the leader has ended; its pid is kept until the job is over */
    bool has_ended; /* by itself, before hvdrun ended the others: */
    bool is_killed; /* by the signal `value`; else it returned `value` */
    int value;
    struct hvdrun_stream streams[HVDRUN_STREAMS];
};

struct hvdrun_watch {
    struct hvdrun_rank *ranks;
    int count;
    int signal_fd; /* a signalfd with SIGCHLD and what is to be forwarded, non-blocking */
    const struct hvd_rendezvous_service *service; /* is told of ranks that end */
    const char *cause; /* file in which ranks tell who failed (pmix_boot/cause.h) */
    struct hvdrun_elastic *elastic; /* NULL: one rank that fails ends all */
};

/* Returns when no process of the job is left and all output is written: the exit code of
 * the job, which is that of the rank that failed first, as ranks tell, else of the first
 * that ended, 128 + signal where one did it, or 0. Then cause says in one sentence what
 * happened; its status is 0 if nothing did. */
int hvdrun_supervise(struct hvdrun_watch *watch, struct hvd_error *cause);

/* Ends all ranks that were started; for a job that cannot go on. */
void hvdrun_supervise_end(struct hvdrun_watch *watch);

/* Blocks what hvdrun acts on (ends of children, requests to end or to stop, SIGUSR1 and
 * 2) for this thread and those that it starts later, ignores SIGPIPE, and reports the
 * mask from before. Returns the descriptor, the caller's to close, or a negative
 * status. */
int hvdrun_supervise_signals(sigset_t *before, struct hvd_error *err);

#endif
