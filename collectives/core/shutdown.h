/* SPDX-License-Identifier: Apache-2.0 */
/* Shutdown: one rank asks, all leave together.
 *
 *   any rank   SHUTDOWN up to rank 0, and why
 *   rank 0     SHUTDOWN down, and why: no batch comes after this; what was agreed is run to its end
 *   leaves     DRAINED up, when a whole subtree has run everything, and its messages are received
 *   rank 0     CLOSE down: nobody needs anybody's data any more, sockets may close
 *
 * Threads: the progress lock is held. */
#ifndef HVD_SHUTDOWN_H
#define HVD_SHUTDOWN_H

#include <stdbool.h>
#include <stddef.h>

struct hvd_job;

enum hvd_phase {
    HVD_PHASE_RUNNING,
    HVD_PHASE_DRAINING, /* shutdown agreed: nothing new, what was agreed is run */
    HVD_PHASE_CLOSED, /* every rank has drained */
};

enum {
    HVD_SHUTDOWN_WHY_BYTES = 192 /* behind Horovod's words, within a struct hvd_error */
};

struct hvd_shutdown {
    char why[HVD_SHUTDOWN_WHY_BYTES]; /* as who asked first says: "rank 1 on n1: ..." */
    enum hvd_phase phase;
    int drained_children;
    bool sent_drained;
    bool is_wanted; /* rank 0: as soon as no replay is in force */
    bool is_watched; /* a source (loop.h) moves it on, since somebody wants to leave */
};

static inline enum hvd_phase hvd_shutdown_phase(const struct hvd_shutdown *shutdown)
{
    return shutdown->phase;
}

/* This rank, or one below, wants to leave; rank 0 has said that all do; a child has
 * drained; all have. why: text of so many bytes, maybe another process's, which is
 * copied. */
void hvd_shutdown_ask(struct hvd_job *job, const char *why, size_t bytes);
void hvd_shutdown_begin(struct hvd_job *job, const char *why, size_t bytes);
void hvd_shutdown_on_drained(struct hvd_job *job);
void hvd_shutdown_on_close(struct hvd_job *job);

#endif
