/* SPDX-License-Identifier: Apache-2.0 */
/* The loop that drives a rank, over a table of sources. */
#include "collectives/core/loop.h"

#include <assert.h>
#include <stddef.h>

#include "gpu_binding/base/clock.h"

/* How long new submissions and messages of other ranks wait while data moves. */
static const int64_t talk_every_ns = 20000;

void hvd_loop_add(struct hvd_loop *loop, const struct hvd_source *source, void *self,
                  const _Atomic bool *gate)
{
    assert(loop->count < HVD_LOOP_MOST);
    loop->entries[loop->count++] =
        (struct hvd_loop_entry){.source = source, .self = self, .gate = gate};
}

void hvd_loop_open_gate(struct hvd_loop *loop, const _Atomic bool *gate)
{
    for (int i = 0; i < loop->count; i++) {
        if (loop->entries[i].gate == gate) {
            loop->entries[i].gate = NULL;
        }
    }
}

bool hvd_loop_poll(struct hvd_loop *loop)
{
    const int64_t now_ns = hvd_clock_ns();
    const bool is_busy =
        loop->works && loop->data_moves && now_ns - loop->talked_ns < talk_every_ns;
    unsigned talk = 0, data = 0;

    for (int i = 0; i < loop->count; i++) {
        const struct hvd_loop_entry *entry = &loop->entries[i];
        const struct hvd_source *source = entry->source;

        if (source->progress == NULL || (is_busy && source->talks) ||
            (entry->gate != NULL && !atomic_load(entry->gate))) {
            continue;
        }
        *(source->talks ? &talk : &data) |= source->progress(entry->self, now_ns);
    }
    if (!is_busy) {
        loop->talked_ns = now_ns;
    }
    loop->data_moves = (data & HVD_SOURCE_MOVED) != 0;
    loop->works = (data & HVD_SOURCE_WORKS) != 0;
    return ((talk | data) & HVD_SOURCE_MOVED) != 0;
}

bool hvd_loop_settle(struct hvd_loop *loop, const struct hvd_timed_wait *wait)
{
    bool is_settled = true;

    for (int i = 0; i < loop->count && is_settled; i++) {
        const struct hvd_loop_entry *entry = &loop->entries[i];

        is_settled =
            entry->source->settle == NULL || entry->source->settle(entry->self, wait);
    }
    return is_settled;
}

int64_t hvd_loop_deadline(const struct hvd_loop *loop, int64_t until_ns, int64_t now_ns)
{
    int64_t first_ns = until_ns;

    for (int i = 0; i < loop->count; i++) {
        const struct hvd_loop_entry *entry = &loop->entries[i];
        int64_t due_ns;

        if (entry->source->deadline == NULL ||
            (entry->gate != NULL && !atomic_load(entry->gate))) {
            continue;
        }
        due_ns = entry->source->deadline(entry->self, now_ns);
        if (due_ns >= 0 && (first_ns < 0 || due_ns < first_ns)) {
            first_ns = due_ns;
        }
    }
    return first_ns;
}

bool hvd_loop_may_drain(struct hvd_loop *loop)
{
    bool may_drain = true;

    for (int i = 0; i < loop->count; i++) {
        const struct hvd_loop_entry *entry = &loop->entries[i];

        if (entry->source->may_drain != NULL && !entry->source->may_drain(entry->self)) {
            may_drain = false;
        }
    }
    return may_drain;
}

void hvd_loop_drain(struct hvd_loop *loop, int status, const char *text)
{
    for (int i = 0; i < loop->count; i++) {
        if (loop->entries[i].source->drain != NULL) {
            loop->entries[i].source->drain(loop->entries[i].self, status, text);
        }
    }
}

bool hvd_loop_has_drained(const struct hvd_loop *loop)
{
    bool has_drained = true;

    for (int i = 0; i < loop->count && has_drained; i++) {
        const struct hvd_loop_entry *entry = &loop->entries[i];

        has_drained =
            entry->source->has_drained == NULL || entry->source->has_drained(entry->self);
    }
    return has_drained;
}

void hvd_loop_end(struct hvd_loop *loop, int status, const char *text)
{
    for (int i = 0; i < loop->count; i++) {
        if (loop->entries[i].source->end != NULL) {
            loop->entries[i].source->end(loop->entries[i].self, status, text);
        }
    }
}

void hvd_loop_fail(struct hvd_loop *loop, int status, const char *text)
{
    for (int i = loop->count - 1; i >= 0; i--) {
        if (loop->entries[i].source->fail != NULL) {
            loop->entries[i].source->fail(loop->entries[i].self, status, text);
        }
    }
}

void hvd_loop_close(struct hvd_loop *loop)
{
    for (int i = loop->count - 1; i >= 0; i--) {
        if (loop->entries[i].source->stop != NULL) {
            loop->entries[i].source->stop(loop->entries[i].self);
        }
    }
    while (loop->count > 0) {
        const struct hvd_loop_entry *entry = &loop->entries[--loop->count];

        if (entry->source->close != NULL) {
            entry->source->close(entry->self);
        }
    }
}
