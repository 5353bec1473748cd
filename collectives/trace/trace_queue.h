/* SPDX-License-Identifier: Apache-2.0 */
/* Events on their way from the thread where they happen to a thread of the queue's own,
 * which may wait for a disk. Putting one in takes a lock for a few instructions and never
 * waits; the memory is bounded: a full queue refuses.
 *
 * The thread sleeps while there is nothing. It takes the first event at once and then
 * looks every pause_ms, or earlier when the queue is half full. */
#ifndef HVD_TRACE_QUEUE_H
#define HVD_TRACE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "collectives/trace/trace_text.h"
#include "gpu_binding/base/error.h"

struct hvd_trace_queue;

/* Gets events in their order, on the queue's thread. Returns how many it takes; the
 * others come again, unless is_last, when it must take all. Their text stays the
 * queue's. */
typedef size_t (*hvd_trace_sink)(void *context, const struct hvd_trace_event *events,
                                 size_t count, bool is_last);

struct hvd_trace_queue_options {
    size_t capacity; /* events */
    size_t text_bytes; /* of HVD_TRACE_LINES in the queue, at most */
    int pause_ms;
    hvd_trace_sink sink;
    void *context; /* of sink */
};

/* Starts the thread, which gets no signals. The caller owns *out. */
int hvd_trace_queue_create(const struct hvd_trace_queue_options *options,
                           struct hvd_trace_queue **out, struct hvd_error *err);

/* Takes over event->text, also when it refuses, which it does by false. One thread at a
 * time puts, or asks for the room. */
bool hvd_trace_queue_put(struct hvd_trace_queue *queue,
                         const struct hvd_trace_event *event);

/* So many events will not be refused. */
size_t hvd_trace_queue_room(struct hvd_trace_queue *queue);

/* Lets the sink have what is left, ends the thread. NULL is fine. */
void hvd_trace_queue_destroy(struct hvd_trace_queue *queue);

#endif
