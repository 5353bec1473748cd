/* SPDX-License-Identifier: Apache-2.0 */
/* Who comes last, and what that costs the others: for the report at the end of a job.
 *
 * A batch can end only when its last rank has come, and it ends at nearly the same moment
 * everywhere. So each rank measures, with its own clock, how long a batch kept its queue:
 *
 *   from  this rank's submission of its last tensor, or the end of the batch before it in the
 *         queue, whichever was later
 *   to    its end
 *
 * The rank with the shortest such wait came last; it was late by what the next one waited
 * more; and its wait is what the batch costs when nobody is late. Waits of one queue do
 * not overlap, so that a rank that is late once for ten batches is late once.
 *
 * Each rank notes its waits, window by window. Windows go up the tree; each rank merges
 * what its children send, batch by batch, into the two shortest waits and the rank of the
 * shortest. Rank 0 counts. Batches of one queue run in the same order on all ranks, so
 * that a batch is known by its place. Pure: no clock, no sockets.
 *
 * Threads: one at a time for all functions (the progress lock). */
#ifndef HVD_STRAGGLER_WAITS_H
#define HVD_STRAGGLER_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/request/descriptor.h"
#include "collectives/transport/control/encoding.h"
#include "gpu_binding/base/error.h"

enum {
    HVD_STRAGGLER_PRIORITIES = 3, /* of the global process set */
    HVD_STRAGGLER_KINDS = 11, /* numbers of collectives: enum hvd_kind */
    /* Batches of a window: what a job that fails loses at most in each queue. */
    HVD_STRAGGLER_WINDOW = 256,
};

/* A batch that this rank has run; times are of any clock of this rank that never
 * jumps. */
struct hvd_straggler_batch {
    enum hvd_kind kind;
    int priority; /* negative: of another process set, which is only added up */
    int64_t tensors;
    int64_t bytes; /* of this rank's input */
    int64_t submitted_ns; /* its last tensor; 0: none, this rank had joined */
    int64_t started_ns;
    int64_t ended_ns;
};

/* Sums over all ranks. */
struct hvd_straggler_kind {
    int64_t batches;
    int64_t tensors;
    int64_t bytes;
    int64_t run_ns; /* of a batch that is compared: what its last rank needed */
};

struct hvd_straggler_rank {
    int64_t last; /* batches in which it was the last */
    int64_t late_us; /* by this much in all of them */
    int64_t most_late_us; /* and in the worst */
    int64_t waited_us; /* for the last rank, in all batches; each queue by itself */
};

struct hvd_straggler_sums {
    int size; /* ranks */
    int64_t compared; /* batches */
    int64_t even; /* of these, those whose ranks came within a microsecond */
    bool is_complete; /* every rank has said all */
    const struct hvd_straggler_rank *ranks; /* [size] */
    struct hvd_straggler_kind kinds[HVD_STRAGGLER_KINDS];
};

struct hvd_straggler_waits;

/* children: ranks right below this one in the tree. The caller owns *out. */
int hvd_straggler_waits_create(int rank, int size, int children,
                               struct hvd_straggler_waits **out, struct hvd_error *err);

/* NULL is fine. */
void hvd_straggler_waits_destroy(struct hvd_straggler_waits *waits);

/* Notes a batch. All ranks note those of one queue in one order. */
void hvd_straggler_waits_note(struct hvd_straggler_waits *waits,
                              const struct hvd_straggler_batch *batch);

/* No batch comes any more, on no rank: what is noted is all. */
void hvd_straggler_waits_close(struct hvd_straggler_waits *waits);

/* The next message for the parent, or false when there is none yet. *payload is borrowed
 * until the next call. Rank 0 has none. */
bool hvd_straggler_waits_take(struct hvd_straggler_waits *waits, const void **payload,
                              size_t *bytes);

/* Takes a child's message. HVD_ERR_ARG for one that no rank can have sent. */
int hvd_straggler_waits_merge(struct hvd_straggler_waits *waits, const void *payload,
                              size_t bytes);

/* On rank 0: all that is known, borrowed until the next call of any function. Whole when
 * all ranks have closed and their messages are merged. */
const struct hvd_straggler_sums *
hvd_straggler_waits_sums(struct hvd_straggler_waits *waits);

#endif
