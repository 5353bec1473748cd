/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of events: soonest first; of events at the same time, first planned first. */
#ifndef HVD_SIMULATE_EVENTS_H
#define HVD_SIMULATE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct simulate_event {
    double time; /* seconds */
    uint64_t order; /* set by put */
    int kind;
    int who;
    uint64_t value;
};

/* Zeroed is empty. */
struct simulate_events {
    struct simulate_event *heap; /* [count] */
    size_t count;
    size_t capacity;
    uint64_t order;
};

/* Without memory the program ends. */
void simulate_events_put(struct simulate_events *events, struct simulate_event event);

/* False when there is none. */
bool simulate_events_take(struct simulate_events *events, struct simulate_event *event);
void simulate_events_finish(struct simulate_events *events);

/* Says so and ends the program. */
_Noreturn void simulate_no_memory(void);

/* Room for twice as many and some more: the array may move. Ends the program without memory. */
void *simulate_grow(void *array, size_t *capacity, size_t bytes_each);

#endif
