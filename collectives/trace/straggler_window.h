/* SPDX-License-Identifier: Apache-2.0 */
/* The waits of some batches of one queue, merged over some ranks. */
#ifndef HVD_STRAGGLER_WINDOW_H
#define HVD_STRAGGLER_WINDOW_H

#include "collectives/trace/straggler_waits.h"

/* No wait: that rank had joined, or there is no such rank. Longer waits count as one
 * less. */
#define HVD_WAIT_NONE UINT32_MAX

struct hvd_straggler_window_record {
    uint32_t least_us;
    uint32_t second_us;
    int32_t rank; /* that waited least */
};

/* What one rank waited in all batches of the window. */
struct hvd_straggler_window_share {
    int64_t rank;
    int64_t wait_us;
};

struct hvd_straggler_window {
    struct hvd_straggler_window *next;
    int priority;
    int64_t number; /* of the queue's windows */
    int parts; /* this rank's own and its children's that are in it */
    int count; /* batches */
    int share_count;
    int share_room;
    struct hvd_straggler_window_share *shares; /* one per rank */
    struct hvd_straggler_window_record records[HVD_STRAGGLER_WINDOW];
    /* of the batches; not sent, all ranks know it */
    uint8_t kinds_of[HVD_STRAGGLER_WINDOW];
    struct hvd_straggler_kind kinds[HVD_STRAGGLER_KINDS]; /* what was run meanwhile */
};

/* Empty; NULL without memory. Ended with destroy, which takes NULL. */
struct hvd_straggler_window *hvd_straggler_window_create(int priority, int64_t number);
void hvd_straggler_window_destroy(struct hvd_straggler_window *window);

/* One rank's wait for the batch at `place`. */
void hvd_straggler_window_note(struct hvd_straggler_window *window, int place, int rank,
                               uint32_t wait_us);

/* Adds what is not negative; what is too large for the type stays the largest number. */
void hvd_straggler_add(int64_t *sum, int64_t more);
void hvd_straggler_add_kinds(struct hvd_straggler_kind *into,
                             const struct hvd_straggler_kind *from);

/* Returns 0 or HVD_ERR_NOMEM. */
int hvd_straggler_window_share(struct hvd_straggler_window *window, int rank,
                               int64_t wait_us);

/* Sets writer->failed without memory. */
void hvd_straggler_window_write(const struct hvd_straggler_window *window,
                                struct hvd_writer *writer);

/* Which window a message belongs to. HVD_ERR_ARG for what no window of a job of `size`
 * ranks has written. */
int hvd_straggler_window_peek(const void *payload, size_t bytes, int size, int *priority,
                              int64_t *number);

/* Merges a message that peek has found good. Returns 0 or HVD_ERR_NOMEM. */
int hvd_straggler_window_merge(struct hvd_straggler_window *window, const void *payload);

#endif
