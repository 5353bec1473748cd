/* SPDX-License-Identifier: Apache-2.0 */
/* Shutdown: one rank asks, all leave together.
 *
 *   any rank   SHUTDOWN up to rank 0, with the reason
 *   rank 0     SHUTDOWN down, with the reason: no batch begins after this; agreed batches
 *              run to their end
 *   all ranks  DRAINED up, when a whole subtree has run all batches and received all
 *              messages
 *   rank 0     CLOSE down: no rank needs data of another one any more, sockets may close
 *
 * Threads: the progress lock is held. */
#ifndef HVD_SHUTDOWN_H
#define HVD_SHUTDOWN_H

#include <stdbool.h>
#include <stddef.h>

struct hvd_job;

enum hvd_phase {
    HVD_PHASE_RUNNING,
    /* shutdown is agreed on: nothing new begins, agreed batches run */
    HVD_PHASE_DRAINING,
    HVD_PHASE_CLOSED, /* every rank has drained */
};

enum {
    /* for the reason, which Horovod's sentences follow within a struct hvd_error */
    HVD_SHUTDOWN_WHY_BYTES = 192
};

struct hvd_shutdown {
    /* the reason of the rank that asked first: "rank 1 on n1: ..." */
    char why[HVD_SHUTDOWN_WHY_BYTES];
    enum hvd_phase phase;
    int drained_children;
    bool sent_drained;
    bool is_wanted; /* rank 0: shut down as soon as no replay is active */
    /* some rank wants to leave, so a source (loop.h) moves the shutdown on */
    bool is_watched;
};

static inline enum hvd_phase hvd_shutdown_phase(const struct hvd_shutdown *shutdown)
{
    return shutdown->phase;
}

/* ask: this rank, or one below it, wants to leave. begin: rank 0 has decided that all
 * ranks leave. on_drained: a child has drained. on_close: all ranks have drained. why: a
 * text of that many bytes, perhaps from another process; it is copied. */
void hvd_shutdown_ask(struct hvd_job *job, const char *why, size_t bytes);
void hvd_shutdown_begin(struct hvd_job *job, const char *why, size_t bytes);
void hvd_shutdown_on_drained(struct hvd_job *job);
void hvd_shutdown_on_close(struct hvd_job *job);

#endif
