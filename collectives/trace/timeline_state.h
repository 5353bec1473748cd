/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the timeline, shared by the files that make it up:
 *   timeline.c         the beginning and end of a recording, and rank 0's file
 *   timeline_ranks.c   rank 0's orders to all ranks, and the ranks' events on the way to
 *                      rank 0
 *   timeline_device.c  events of the work that a GPU does for a tensor
 *   timeline_events.c  the queue, and the events of a tensor
 * Each file calls only those below it. */
#ifndef HVD_TIMELINE_STATE_H
#define HVD_TIMELINE_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "collectives/trace/clock_sync.h"
#include "collectives/trace/timeline.h"
#include "collectives/trace/trace_file.h"
#include "collectives/trace/trace_queue.h"
#include "collectives/trace/trace_rows.h"

/* Lines of JSON for rank 0. The queue's thread makes them; the progress thread sends
 * them. */
struct hvd_timeline_parcel {
    pthread_mutex_t lock; /* protects the members below */
    char *data; /* a struct head, then lines */
    size_t bytes;
};

struct hvd_timeline {
    struct hvd_timeline_config config;
    bool is_on; /* events are recorded */
    bool marks_cycles;
    struct hvd_trace_queue *queue; /* NULL if nothing is recorded */
    uint32_t generation; /* number of the recording, counted by rank 0 */
    int64_t start_ns; /* the beginning, by rank 0's clock */
    int64_t opened_ns; /* the beginning, by this rank's clock */

    /* timeline_events.c */
    struct hvd_trace_rows rows;
    size_t open_count; /* rows with an activity that has not ended */
    int64_t dropped; /* events lost since the trace last mentioned it */

    /* used by the queue's thread */
    struct hvd_trace_frame frame;
    struct hvd_trace_file *file; /* rank 0 */
    _Atomic bool has_failed; /* the file cannot be written any more */

    /* rank 0 */
    char *path;
    int ranks_heard; /* number of ranks that have sent their last events */

    /* other ranks */
    struct hvd_clock_sync clock;
    struct hvd_timeline_parcel parcel;
    int64_t told_error_us; /* clock error in the last label; used by the queue's thread */
    _Atomic bool has_order; /* START has come: start_ns and generation are valid */
    _Atomic bool is_due; /* the parcel must be sent */
};

/* --- timeline_events.c --- */

/* Starts the queue of a new recording. Returns 0, or a failure with the reason in err. */
int hvd_timeline_open_queue(struct hvd_timeline *timeline, hvd_trace_sink sink,
                            int pause_ms, struct hvd_error *err);

/* Records no more events, ends the activities that have begun, and lets the sink have all
 * events. */
void hvd_timeline_close_queue(struct hvd_timeline *timeline);

/* Whether the queue has room for this many events, in addition to those that open rows
 * will need. */
bool hvd_timeline_has_room(struct hvd_timeline *timeline, size_t events);

/* Queues an event with the present time. Takes its text over. */
void hvd_timeline_put(struct hvd_timeline *timeline, struct hvd_trace_event event);

/* Returns the row of this tensor; NULL: it has none. Zeros of a joined rank are not
 * shown. */
struct hvd_trace_row *hvd_timeline_row_of(struct hvd_timeline *timeline,
                                          const struct hvd_entry *entry);

/* Queues `bytes` bytes of lines from another rank; rank 0 only. */
void hvd_timeline_put_lines(struct hvd_timeline *timeline, const char *lines,
                            size_t bytes);

/* Ends all activities that have begun, so that every beginning has an end, and adds the
 * number of lost events. */
void hvd_timeline_end_rows(struct hvd_timeline *timeline);

/* --- timeline_ranks.c --- */

int hvd_timeline_init_ranks(struct hvd_timeline *timeline);
void hvd_timeline_finish_ranks(struct hvd_timeline *timeline);

/* Rank 0 tells the other ranks to start, or to stop. Return 0 or HVD_ERR_NOMEM. */
int hvd_timeline_tell_start(struct hvd_timeline *timeline);
int hvd_timeline_tell_stop(struct hvd_timeline *timeline);

#endif
