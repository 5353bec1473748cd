/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the timeline, shared by the files that make it up:
 *   timeline.c         a recording's beginning, and rank 0's file
 *   timeline_ranks.c   rank 0's orders to all ranks, and their events on the way to rank 0
 *   timeline_device.c  events of what a GPU did with a tensor
 *   timeline_events.c  the queue, and the events of a tensor
 * Each calls only those below it. */
#ifndef HVD_TIMELINE_STATE_H
#define HVD_TIMELINE_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "collectives/trace/clock_sync.h"
#include "collectives/trace/timeline.h"
#include "collectives/trace/trace_file.h"
#include "collectives/trace/trace_queue.h"
#include "collectives/trace/trace_rows.h"

/* Lines for rank 0, made by the queue's thread, sent by the driver. */
struct hvd_timeline_parcel {
    pthread_mutex_t lock; /* guards what follows */
    char *data; /* a head, then lines */
    size_t bytes;
};

struct hvd_timeline {
    struct hvd_timeline_config config;
    bool is_on; /* events are taken */
    bool marks_cycles;
    struct hvd_trace_queue *queue; /* NULL when nothing is recorded */
    uint32_t generation; /* of the recording, counted by rank 0 */
    int64_t start_ns; /* rank 0's clock */
    int64_t opened_ns; /* this rank's */

    /* timeline_events.c */
    struct hvd_trace_rows rows;
    size_t open_count; /* rows in which something has begun */
    int64_t dropped; /* events, since the trace told */

    /* The queue's thread. */
    struct hvd_trace_frame frame;
    struct hvd_trace_file *file; /* rank 0 */
    _Atomic bool has_failed; /* the file cannot be written any more */

    /* rank 0 */
    char *path;
    int ranks_heard; /* that have sent their last events */

    /* other ranks */
    struct hvd_clock_sync clock;
    struct hvd_timeline_parcel parcel;
    int64_t told_error_us; /* of the clock; the queue's thread */
    _Atomic bool has_order; /* start_ns and generation are of this recording */
    _Atomic bool is_due; /* the parcel is to be sent */
};

/* --- timeline_events.c --- */

/* Starts the queue with an empty picture. Returns 0 or the reason in err. */
int hvd_timeline_open_queue(struct hvd_timeline *timeline, hvd_trace_sink sink,
                            int pause_ms, struct hvd_error *err);

/* Takes no more events, ends those that have begun, and lets the sink have everything. */
void hvd_timeline_close_queue(struct hvd_timeline *timeline);

/* So many events will not be refused, beyond those that open rows will need. */
bool hvd_timeline_has_room(struct hvd_timeline *timeline, size_t events);

/* An event of now. Takes over its text. */
void hvd_timeline_put(struct hvd_timeline *timeline, struct hvd_trace_event event);

/* The row of this tensor; NULL when there is none. An entry of zeros is not shown. */
struct hvd_trace_row *hvd_timeline_row_of(struct hvd_timeline *timeline,
                                          const struct hvd_entry *entry);

/* Lines of another rank, bytes long; rank 0. */
void hvd_timeline_put_lines(struct hvd_timeline *timeline, const char *lines,
                            size_t bytes);

/* Ends what has begun, so that every beginning has an end, and tells of dropped
 * events. */
void hvd_timeline_end_rows(struct hvd_timeline *timeline);

/* --- timeline_ranks.c --- */

int hvd_timeline_init_ranks(struct hvd_timeline *timeline);
void hvd_timeline_finish_ranks(struct hvd_timeline *timeline);

/* Rank 0 tells the others to begin, to end. Return 0 or HVD_ERR_NOMEM. */
int hvd_timeline_tell_start(struct hvd_timeline *timeline);
int hvd_timeline_tell_stop(struct hvd_timeline *timeline);

#endif
