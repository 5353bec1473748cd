/* SPDX-License-Identifier: Apache-2.0 */
/* The events that an agreement has for its caller. */
#include "collectives/agreement/event_queue.h"

#include <stdlib.h>

#include "collectives/request/batch.h"

enum {
    FIRST_CAPACITY = 16
};

static struct hvd_queued_event *slot_of(const struct hvd_event_queue *queue,
                                        size_t number)
{
    return &queue->ring[number & (queue->capacity - 1)];
}

/* Returns the set that the event is about, or NULL. */
static struct hvd_set *set_of(const struct hvd_agreement_event *event)
{
    switch (event->kind) {
    case HVD_AGREEMENT_PAUSE:
    case HVD_AGREEMENT_CONTINUE:
    case HVD_AGREEMENT_ADD_SET:
    case HVD_AGREEMENT_REMOVE_SET:
    case HVD_AGREEMENT_ABORT_SET:
        return event->set;
    default:
        return NULL;
    }
}

static void discard_event(const struct hvd_queued_event *slot)
{
    if (slot->event.kind == HVD_AGREEMENT_RUN) {
        hvd_batch_destroy(slot->event.batch);
    }
    hvd_set_drop(slot->set);
}

void hvd_event_queue_drop(struct hvd_event_queue *queue)
{
    for (size_t i = queue->first; i != queue->end; i++) {
        discard_event(slot_of(queue, i));
    }
    queue->first = 0;
    queue->end = 0;
    hvd_set_drop(queue->lent);
    queue->lent = NULL;
    queue->ending = NULL;
    queue->data.bytes = 0;
}

void hvd_event_queue_finish(struct hvd_event_queue *queue)
{
    hvd_event_queue_drop(queue);
    hvd_writer_finish(&queue->data);
    free(queue->ring);
    *queue = (struct hvd_event_queue){0};
}

static bool grow_ring(struct hvd_event_queue *queue)
{
    struct hvd_event_queue grown = *queue;

    grown.capacity = queue->capacity > 0 ? 2 * queue->capacity : FIRST_CAPACITY;
    grown.ring = calloc(grown.capacity, sizeof(grown.ring[0]));
    if (grown.ring == NULL) {
        return false;
    }
    for (size_t i = queue->first; i != queue->end; i++) {
        *slot_of(&grown, i) = *slot_of(queue, i);
    }
    free(queue->ring);
    *queue = grown;
    return true;
}

/* Adds a slot behind all others; returns NULL if memory is out. */
static struct hvd_queued_event *add_slot(struct hvd_event_queue *queue)
{
    if (queue->data.failed ||
        (queue->end - queue->first == queue->capacity && !grow_ring(queue))) {
        queue->failed = true;
        return NULL;
    }
    return slot_of(queue, queue->end++);
}

void hvd_event_queue_put(struct hvd_event_queue *queue,
                         const struct hvd_agreement_event *event, struct hvd_entry *entry)
{
    struct hvd_queued_event *slot;
    size_t data_at = queue->data.bytes;

    if (event->data != NULL) {
        hvd_put(&queue->data, event->data, event->bytes);
    }
    slot = add_slot(queue);
    if (slot == NULL) {
        return;
    }
    *slot = (struct hvd_queued_event){
        .event = *event, .data_at = data_at, .entry = entry, .set = set_of(event)};
    if (slot->set != NULL) {
        hvd_set_keep(slot->set);
    }
}

void hvd_event_queue_put_batch(struct hvd_event_queue *queue,
                               enum hvd_agreement_event_kind kind,
                               struct hvd_batch *batch)
{
    struct hvd_queued_event *slot = add_slot(queue);

    if (slot != NULL) {
        slot->event.kind = kind;
        slot->event.data = NULL;
        slot->event.batch = batch;
        slot->entry = NULL;
        slot->set = NULL;
    } else if (kind == HVD_AGREEMENT_RUN) {
        hvd_batch_destroy(batch);
    }
}

void hvd_event_queue_put_set(struct hvd_event_queue *queue,
                             enum hvd_agreement_event_kind kind, struct hvd_set *set)
{
    const struct hvd_agreement_event event = {.kind = kind, .set = set};

    hvd_event_queue_put(queue, &event, NULL);
}

const struct hvd_agreement_event *hvd_event_queue_take(struct hvd_event_queue *queue)
{
    struct hvd_queued_event *slot;

    if (queue->lent != NULL) {
        hvd_set_drop(queue->lent);
        queue->lent = NULL;
    }
    if (queue->first == queue->end) {
        queue->data.bytes = 0;
        queue->first = 0;
        queue->end = 0;
        return NULL;
    }
    slot = slot_of(queue, queue->first++);
    queue->ending = slot->entry;
    if (slot->event.data != NULL) {
        slot->event.data = queue->data.data + slot->data_at;
    }
    queue->lent = slot->set;
    return &slot->event;
}
