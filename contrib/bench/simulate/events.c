/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap of events. */
#include "contrib/bench/simulate/events.h"

#include <stdio.h>
#include <stdlib.h>

void simulate_no_memory(void)
{
    fprintf(stderr, "hvd-bench: --simulate: no memory for a machine of this size\n");
    exit(1);
}

void *simulate_grow(void *array, size_t *capacity, size_t bytes_each)
{
    void *grown;

    *capacity = 2 * *capacity + 16;
    grown = realloc(array, *capacity * bytes_each);
    if (grown == NULL) {
        simulate_no_memory();
    }
    return grown;
}

static bool is_before(const struct simulate_event *a, const struct simulate_event *b)
{
    return a->time < b->time || (a->time == b->time && a->order < b->order);
}

void simulate_events_put(struct simulate_events *events, struct simulate_event event)
{
    size_t at = events->count;

    if (events->count == events->capacity) {
        events->heap =
            simulate_grow(events->heap, &events->capacity, sizeof(events->heap[0]));
    }
    event.order = events->order++;
    events->count++;
    while (at > 0 && is_before(&event, &events->heap[(at - 1) / 2])) {
        events->heap[at] = events->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    events->heap[at] = event;
}

bool simulate_events_take(struct simulate_events *events, struct simulate_event *event)
{
    struct simulate_event last;
    size_t at = 0;

    if (events->count == 0) {
        return false;
    }
    *event = events->heap[0];
    last = events->heap[--events->count];
    for (;;) {
        size_t child = 2 * at + 1;

        if (child + 1 < events->count &&
            is_before(&events->heap[child + 1], &events->heap[child])) {
            child++;
        }
        if (child >= events->count || !is_before(&events->heap[child], &last)) {
            break;
        }
        events->heap[at] = events->heap[child];
        at = child;
    }
    events->heap[at] = last;
    return true;
}

void simulate_events_finish(struct simulate_events *events)
{
    free(events->heap);
    *events = (struct simulate_events){0};
}
