/* SPDX-License-Identifier: Apache-2.0 */
/* Passes events to a thread of its own, which may wait for a disk. Putting an event into
 * the queue takes a lock for a few instructions and never waits. The memory is bounded: a
 * full queue refuses events.
 *
 * The thread sleeps while the queue is empty. It takes the first event at once; then it
 * looks every pause_ms, or earlier if the queue is half full. */
#ifndef HVD_TRACE_QUEUE_H
#define HVD_TRACE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "collectives/trace/trace_text.h"
#include "gpu_binding/base/error.h"

struct hvd_trace_queue;

/* Gets events in their order, on the queue's thread. Returns how many it takes; the
 * others are passed again later. If is_last, it must take all of them. The queue owns
 * their texts. */
typedef size_t (*hvd_trace_sink)(void *context, const struct hvd_trace_event *events,
                                 size_t count, bool is_last);

struct hvd_trace_queue_options {
    size_t capacity; /* events */
    size_t text_bytes; /* most bytes of HVD_TRACE_LINES in the queue */
    int pause_ms;
    hvd_trace_sink sink;
    void *context; /* of sink */
};

/* Starts the thread, which blocks all signals. The caller owns *out. */
int hvd_trace_queue_create(const struct hvd_trace_queue_options *options,
                           struct hvd_trace_queue **out, struct hvd_error *err);

/* Queues an event and takes event->text over. Returns false, and frees the text, if the
 * queue is full. put and room must be called by one thread at a time. */
bool hvd_trace_queue_put(struct hvd_trace_queue *queue,
                         const struct hvd_trace_event *event);

/* Returns the number of events that put will not refuse. */
size_t hvd_trace_queue_room(struct hvd_trace_queue *queue);

/* Lets the sink have the remaining events, and ends the thread. NULL is fine. */
void hvd_trace_queue_destroy(struct hvd_trace_queue *queue);

#endif
