/* SPDX-License-Identifier: Apache-2.0 */
/* The events that an agreement has for its caller (agreement.h), oldest first.
 *
 * The ring of events only grows. Messages and texts lie in one byte string, which is
 * reused when the queue is empty, so that an event costs no allocation. Once memory for
 * an event is missing, `failed` stays set, and the job must end. */
#ifndef HVD_EVENT_QUEUE_H
#define HVD_EVENT_QUEUE_H

#include "collectives/agreement/agreement.h"
#include "collectives/transport/control/encoding.h"

struct hvd_entry;

struct hvd_queued_event {
    struct hvd_agreement_event event;
    size_t data_at; /* where its data begins in the queue's byte string */
    /* ends when the event has been carried out; may be NULL */
    struct hvd_entry *entry;
    struct hvd_set *set; /* the set that the event keeps, or NULL */
};

/* An empty queue is all zeros. */
struct hvd_event_queue {
    struct hvd_queued_event *ring; /* [capacity], a power of two */
    size_t capacity;
    size_t first; /* number of events taken since the queue was last empty */
    size_t end; /* number of events added since then */
    struct hvd_writer data;
    /* the entry of the event that was taken last, or NULL */
    struct hvd_entry *ending;
    struct hvd_set *lent; /* the set of that event, or NULL */
    bool failed;
};

/* Drops all events and frees the memory. */
void hvd_event_queue_finish(struct hvd_event_queue *queue);

/* Drops all events; destroys batches that were to run. */
void hvd_event_queue_drop(struct hvd_event_queue *queue);

/* Adds an event; copies its data, which may be NULL, and takes a reference to its set.
 * entry: see struct hvd_queued_event. */
void hvd_event_queue_put(struct hvd_event_queue *queue,
                         const struct hvd_agreement_event *event,
                         struct hvd_entry *entry);

/* Add an event without data. RUN takes the batch over. */
void hvd_event_queue_put_batch(struct hvd_event_queue *queue,
                               enum hvd_agreement_event_kind kind,
                               struct hvd_batch *batch);
void hvd_event_queue_put_set(struct hvd_event_queue *queue,
                             enum hvd_agreement_event_kind kind, struct hvd_set *set);

/* Takes the oldest event, which is lent until the next call; NULL if there is none. */
const struct hvd_agreement_event *hvd_event_queue_take(struct hvd_event_queue *queue);

#endif
