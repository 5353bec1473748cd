/* SPDX-License-Identifier: Apache-2.0 */
/* Straggler report, the measurement: which rank arrived last, and how long the others
 * waited.
 *
 * A batch can end only when its last rank has arrived, and it ends at nearly the same
 * moment on all ranks. So each rank measures, with its own clock, how long a batch
 * occupied its queue:
 *
 *   from  this rank's submission of the batch's last tensor, or the end of the previous
 *         batch in the queue, whichever was later
 *   to    the end of the batch
 *
 * The rank with the shortest wait arrived last. Its lateness is the difference to the
 * second-shortest wait, and its wait is the time that the batch takes when no rank is
 * late. Waits of one queue do not overlap, so that a rank that delays ten batches by
 * being late once is counted as late once.
 *
 * Each rank notes its waits in windows, which go up the tree. Each rank merges its
 * children's windows with its own, batch by batch, into the two shortest waits and the
 * rank of the shortest. Rank 0 adds up the results. Batches of one queue run in the same
 * order on all ranks, so that their position identifies them. Pure: no clock, no sockets.
 *
 * Threads: one at a time for all functions (the progress lock). */
#ifndef HVD_STRAGGLER_WAITS_H
#define HVD_STRAGGLER_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/request/descriptor.h"
#include "collectives/trace/straggler_buckets.h"
#include "collectives/trace/straggler_history.h"
#include "collectives/trace/straggler_sections.h"
#include "collectives/transport/control/encoding.h"
#include "gpu_binding/base/error.h"

enum {
    HVD_STRAGGLER_PRIORITIES = 3, /* of the global process set */
    HVD_STRAGGLER_KINDS = 11, /* number of kinds of collectives: enum hvd_kind */
    /* Batches in a window. A job that fails loses at most one window of each queue, and
     * metrics of late ranks are behind by one. */
    HVD_STRAGGLER_WINDOW = 64,
};

/* A batch that this rank has run. The times may come from any clock of this rank that
 * never jumps. */
struct hvd_straggler_batch {
    enum hvd_kind kind;
    /* negative: of another process set; such batches are counted, but not compared */
    int priority;
    int64_t tensors;
    int64_t bytes; /* of this rank's input */
    /* submission of its last tensor; 0: none, because this rank had joined */
    int64_t submitted_ns;
    int64_t started_ns;
    int64_t ended_ns;
    /* for the page of the report: the first tensor, or NULL; the steps that the program
     * had counted when the batch ended, or 0 */
    const char *name;
    int64_t steps;
};

/* Sums over all ranks. */
struct hvd_straggler_kind {
    int64_t batches;
    int64_t tensors;
    int64_t bytes;
    /* run time of the batches; for a compared batch, the wait of its last rank */
    int64_t run_ns;
};

struct hvd_straggler_rank {
    int64_t last; /* number of batches in which this rank was the last */
    int64_t late_us; /* sum of the rank's latenesses */
    int64_t most_late_us; /* largest of the rank's latenesses */
    /* time for which the rank waited for later ranks, added up over all queues */
    int64_t waited_us;
};

struct hvd_straggler_sums {
    int size; /* ranks */
    int64_t compared; /* batches */
    int64_t even; /* batches whose ranks arrived within a microsecond */
    bool is_complete; /* the data of every rank are complete */
    const struct hvd_straggler_rank *ranks; /* [size] */
    int section_count;
    const struct hvd_straggler_section *sections; /* sums over the ranks */
    /* time of each rank in each section: [rank * HVD_SECTIONS + section] */
    const int64_t *section_ns;
    /* for the page of the report; NULL without one */
    const struct hvd_straggler_history *history;
    const struct hvd_straggler_buckets *buckets;
    struct hvd_straggler_kind kinds[HVD_STRAGGLER_KINDS];
};

struct hvd_straggler_waits;

/* children: number of children in the tree. The caller owns *out. */
int hvd_straggler_waits_create(int rank, int size, int children,
                               struct hvd_straggler_waits **out, struct hvd_error *err);

/* Makes the windows carry this rank's times in sections; borrowed until destroy. */
void hvd_straggler_waits_watch(struct hvd_straggler_waits *waits,
                               struct hvd_straggler_sections *sections);

/* Keeps what the page of the report shows: a history of ranks and steps, and the buckets.
 * began_ns: the time when the report began. All ranks of a job call it, before the first
 * note, or none. */
int hvd_straggler_waits_keep(struct hvd_straggler_waits *waits, int64_t began_ns,
                             struct hvd_error *err);

/* NULL is fine. */
void hvd_straggler_waits_destroy(struct hvd_straggler_waits *waits);

/* Notes a batch. All ranks must note the batches of one queue in the same order. */
void hvd_straggler_waits_note(struct hvd_straggler_waits *waits,
                              const struct hvd_straggler_batch *batch);

/* To be called when no rank will note another batch: closes the last windows. */
void hvd_straggler_waits_close(struct hvd_straggler_waits *waits);

/* Returns the next message for the parent, or false if there is none yet. *payload is
 * borrowed until the next call. Rank 0 never has one. */
bool hvd_straggler_waits_take(struct hvd_straggler_waits *waits, const void **payload,
                              size_t *bytes);

/* Merges a child's message. Returns HVD_ERR_ARG for a malformed one. */
int hvd_straggler_waits_merge(struct hvd_straggler_waits *waits, const void *payload,
                              size_t bytes);

/* On rank 0: returns the sums so far, borrowed until the next call of any function. They
 * are complete once all ranks have closed and their messages have been merged. */
const struct hvd_straggler_sums *
hvd_straggler_waits_sums(struct hvd_straggler_waits *waits);

#endif
