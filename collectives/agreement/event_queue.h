/* SPDX-License-Identifier: Apache-2.0 */
/* The events that an agreement has for its caller (agreement.h), oldest first.
 *
 * Events lie in a ring that only grows, and their messages and texts in one byte string
 * that is used anew when the queue is empty: an event costs no allocation. If memory for
 * one is missing, the queue has `failed` from then on, and the job must end. */
#ifndef HVD_EVENT_QUEUE_H
#define HVD_EVENT_QUEUE_H

#include "collectives/agreement/agreement.h"
#include "collectives/transport/control/encoding.h"

struct hvd_entry;

struct hvd_queued_event {
    struct hvd_agreement_event event;
    size_t data_at; /* its data in the queue's byte string */
    /* ends when the event has been carried out; NULL: none does */
    struct hvd_entry *entry;
};

/* Zero-initialised, it is empty. */
struct hvd_event_queue {
    struct hvd_queued_event *ring; /* [capacity], a power of two */
    size_t capacity;
    size_t first; /* number of events taken since the queue was last empty */
    size_t end; /* number of events added since then */
    struct hvd_writer data;
    /* The entry of the event that was taken last. */
    struct hvd_entry *ending;
    struct hvd_set *lent; /* its set, or NULL */
    bool failed;
};

/* like drop, and frees the memory */
void hvd_event_queue_finish(struct hvd_event_queue *queue);

/* Drops all events; destroys batches that were to run. */
void hvd_event_queue_drop(struct hvd_event_queue *queue);

/* Adds an event; copies the data, which may be NULL, and keeps its set.
 * entry: see struct hvd_queued_event. */
void hvd_event_queue_put(struct hvd_event_queue *queue,
                         const struct hvd_agreement_event *event,
                         struct hvd_entry *entry);

/* Events without data. RUN takes the batch over. */
void hvd_event_queue_put_batch(struct hvd_event_queue *queue,
                               enum hvd_agreement_event_kind kind,
                               struct hvd_batch *batch);
void hvd_event_queue_put_set(struct hvd_event_queue *queue,
                             enum hvd_agreement_event_kind kind, struct hvd_set *set);

/* Whether nothing has been added since take returned NULL, as is usual. */
static inline bool hvd_event_queue_is_idle(const struct hvd_event_queue *queue)
{
    return queue->end == 0;
}

/* Takes the oldest event, which is lent until the next call; NULL if there is none. */
const struct hvd_agreement_event *hvd_event_queue_take(struct hvd_event_queue *queue);

#endif
