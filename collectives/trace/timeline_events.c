/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the states of a tensor into events in its row.
 *
 *   idle ── ready ──> negotiating ── agreed ──> waiting ── started ──> running ──┐
 *    ^                                                                           │
 *    └────────────────────────────────── ended ──────────────────────────────────┘
 *
 * Calls that do not fit the state are ignored, because a recording may begin while
 * tensors are in flight. Another rank may submit the tensor of the next step while the
 * previous one still runs here; this is remembered until that has ended. When the queue
 * has no room for all events that a tensor may still need, the tensor is left out
 * (skipped) as a whole. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/trace/ranges.h"
#include "collectives/trace/timeline_state.h"
#include "collectives/trace/timeline_words.h"
#include "gpu_binding/base/clock.h"

enum {
    /* 1,000 tensors in flight may have 10,000 events; a step of a large model has
     * 5,000. */
    QUEUE_EVENTS = 32768,
    /* Lines of other ranks in rank 0's queue: those that 64 ranks send in a few
     * pauses. */
    QUEUE_TEXT_BYTES = 64 * 1024 * 1024,
    EVENTS_PER_TENSOR = 10, /* name of the row, beginnings and ends; without marks */
    /* most messages of one direction and rank that are shown at the same time */
    MESSAGE_ROWS = 64,
    NAME_BYTES = 64,
};

static bool is_of_all_ranks(const struct hvd_timeline *timeline)
{
    return timeline->frame.rank >= 0;
}

bool hvd_timeline_is_on(const struct hvd_timeline *timeline)
{
    return timeline != NULL && timeline->is_on;
}

/* --- into the queue --- */

bool hvd_timeline_has_room(struct hvd_timeline *timeline, size_t events)
{
    return hvd_trace_queue_room(timeline->queue) >=
           timeline->open_count * EVENTS_PER_TENSOR + events;
}

void hvd_timeline_put(struct hvd_timeline *timeline, struct hvd_trace_event event)
{
    event.at_ns = hvd_clock_ns();
    if (!hvd_trace_queue_put(timeline->queue, &event)) {
        timeline->dropped++;
    }
}

static enum hvd_range_domain domain_of(int depth)
{
    return depth == 0 ? HVD_RANGES_TIMELINE : HVD_RANGES_ACTIVITIES;
}

static void put_begin(struct hvd_timeline *timeline, struct hvd_trace_row *row,
                      const char *name)
{
    struct hvd_trace_event event = {
        .kind = HVD_TRACE_BEGIN, .row = row->number, .name = name};

    row->ranges[row->depth] = hvd_range_begin(domain_of(row->depth), name, row->name, -1);
    row->depth++;

    hvd_timeline_put(timeline, event);
}

static void put_end(struct hvd_timeline *timeline, struct hvd_trace_row *row, char *args)
{
    struct hvd_trace_event event = {
        .kind = HVD_TRACE_END, .row = row->number, .text = args};

    row->depth--;
    hvd_range_end(domain_of(row->depth), row->ranges[row->depth]);

    hvd_timeline_put(timeline, event);
}

static void put_mark(struct hvd_timeline *timeline, const struct hvd_trace_row *row,
                     int rank)
{
    struct hvd_trace_event event = {
        .kind = HVD_TRACE_READY, .row = row->number, .number = rank};

    if (is_of_all_ranks(timeline)) {
        return;
    }
    if (hvd_timeline_has_room(timeline, 1)) {
        hvd_timeline_put(timeline, event);
    } else {
        timeline->dropped++;
    }
}

static void tell_dropped(struct hvd_timeline *timeline)
{
    struct hvd_trace_event event = {.kind = HVD_TRACE_DROPPED,
                                    .number = timeline->dropped};

    if (timeline->dropped > 0) {
        timeline->dropped = 0;
        hvd_timeline_put(timeline, event);
    }
}

void hvd_timeline_put_lines(struct hvd_timeline *timeline, const char *lines,
                            size_t bytes)
{
    struct hvd_trace_event event = {.kind = HVD_TRACE_LINES, .number = (int64_t)bytes};

    event.text = bytes > 0 && hvd_timeline_has_room(timeline, 1) ? malloc(bytes) : NULL;
    if (event.text != NULL) {
        memcpy(event.text, lines, bytes);
        if (hvd_trace_queue_put(timeline->queue, &event)) {
            return;
        }
    }
    for (size_t i = 0; i < bytes; i++) {
        timeline->dropped += lines[i] == '\n' ? 1 : 0;
    }
}

/* Queues the number and the label of a row, for the first tensor of its name. */
static void put_label(struct hvd_timeline *timeline, struct hvd_trace_row *row)
{
    struct hvd_trace_event event = {.kind = HVD_TRACE_ROW};
    size_t bytes = strlen(row->name) + 32;

    row->number = ++timeline->rows.last_number;
    event.row = row->number;
    event.text = malloc(bytes);
    if (event.text == NULL) {
        return;
    }
    if (row->set == HVD_SET_GLOBAL) {
        snprintf(event.text, bytes, "%s", row->name);
    } else {
        snprintf(event.text, bytes, "%s (process set %" PRId32 ")", row->name, row->set);
    }
    hvd_timeline_put(timeline, event);
}

/* --- what happens to a tensor --- */

static void begin_negotiation(struct hvd_timeline *timeline, struct hvd_trace_row *row,
                              enum hvd_kind kind)
{
    if (!hvd_timeline_has_room(timeline, EVENTS_PER_TENSOR + 1)) {
        row->state = HVD_ROW_SKIPPED;
        return;
    }
    tell_dropped(timeline);
    if (row->number == 0) {
        put_label(timeline, row);
    }
    put_begin(timeline, row, hvd_timeline_negotiation(kind));
    row->state = HVD_ROW_NEGOTIATING;
    timeline->open_count++;
}

static void note_ready(struct hvd_timeline *timeline, struct hvd_trace_row *row,
                       enum hvd_kind kind, int rank)
{
    if (row->state == HVD_ROW_IDLE) {
        begin_negotiation(timeline, row, kind);
    }
    switch (row->state) {
    case HVD_ROW_NEGOTIATING:
        put_mark(timeline, row, rank);
        break;
    case HVD_ROW_WAITING:
    case HVD_ROW_RUNNING:
        hvd_trace_row_keep_early(row, rank, timeline->config.boot->size);
        break;
    default:
        timeline->dropped++;
        break;
    }
}

bool hvd_timeline_wants_marks(const struct hvd_timeline *timeline)
{
    return hvd_timeline_is_on(timeline) && !is_of_all_ranks(timeline);
}

void hvd_timeline_ready(struct hvd_timeline *timeline,
                        const struct hvd_descriptor *descriptor, int rank)
{
    struct hvd_trace_row *row;

    /* Kinds without a name are hvd's own and are not shown. */
    if (!hvd_timeline_is_on(timeline) ||
        hvd_timeline_negotiation(descriptor->kind) == NULL ||
        (is_of_all_ranks(timeline) && rank != timeline->frame.rank)) {
        return;
    }
    row = hvd_trace_rows_make(&timeline->rows, descriptor->set, descriptor->name);
    if (row != NULL) {
        note_ready(timeline, row, descriptor->kind, rank);
    }
}

void hvd_timeline_proposed(struct hvd_timeline *timeline, const struct hvd_entry *entry)
{
    if (hvd_timeline_is_on(timeline)) {
        hvd_timeline_ready(timeline, &entry->descriptor, timeline->config.boot->rank);
    }
}

struct hvd_trace_row *hvd_timeline_row_of(struct hvd_timeline *timeline,
                                          const struct hvd_entry *entry)
{
    if (!hvd_timeline_is_on(timeline) || entry->is_zeros) {
        return NULL;
    }
    return hvd_trace_rows_find(&timeline->rows, entry->descriptor.set,
                               entry->descriptor.name);
}

static void note_agreed(struct hvd_timeline *timeline, const struct hvd_entry *entry)
{
    struct hvd_trace_row *row = hvd_timeline_row_of(timeline, entry);

    if (row == NULL || row->state != HVD_ROW_NEGOTIATING) {
        return;
    }
    put_end(timeline, row, NULL);
    put_begin(timeline, row, hvd_kind_name(entry->descriptor.kind));
    put_begin(timeline, row, "QUEUE");
    row->state = HVD_ROW_WAITING;
}

void hvd_timeline_agreed(struct hvd_timeline *timeline, const struct hvd_batch *batch)
{
    if (!hvd_timeline_is_on(timeline)) {
        return;
    }
    if (batch->number != 0) {
        /* a replayed batch has no decision of rank 0: mark it here */
        hvd_timeline_cycle(timeline);
    }
    for (int64_t i = 0; i < batch->header.count; i++) {
        note_agreed(timeline, batch->entries[i]);
    }
}

static void note_started(struct hvd_timeline *timeline, const struct hvd_entry *entry,
                         const char *how)
{
    struct hvd_trace_row *row = hvd_timeline_row_of(timeline, entry);

    if (row != NULL && row->state == HVD_ROW_WAITING) {
        put_end(timeline, row, NULL);
        put_begin(timeline, row, how);
        row->state = HVD_ROW_RUNNING;
    }
}

void hvd_timeline_started(struct hvd_timeline *timeline, const struct hvd_batch *batch,
                          bool crosses_nodes)
{
    for (int64_t i = 0; hvd_timeline_is_on(timeline) && i < batch->header.count; i++) {
        const struct hvd_entry *entry = batch->entries[i];

        note_started(timeline, entry,
                     batch->device_number != 0
                         ? "LAUNCH"
                         : hvd_timeline_transport(entry->descriptor.kind, crosses_nodes));
    }
}

static bool is_open(const struct hvd_trace_row *row)
{
    return row->state > HVD_ROW_SKIPPED;
}

/* Ends the activities of the row, from the inside out. */
static void end_row(struct hvd_timeline *timeline, struct hvd_trace_row *row, char *args)
{
    if (row->state != HVD_ROW_NEGOTIATING) {
        put_end(timeline, row, NULL);
    }
    put_end(timeline, row, args);
    row->state = HVD_ROW_IDLE;
    timeline->open_count--;
}

/* Ends the negotiation of a tensor that does not run: it failed, or it is a join. */
static void end_negotiation(struct hvd_timeline *timeline, struct hvd_trace_row *row,
                            const char *what)
{
    end_row(timeline, row, NULL);
    put_begin(timeline, row, what);
    put_end(timeline, row, NULL);
}

void hvd_timeline_ended(struct hvd_timeline *timeline, const struct hvd_entry *entry,
                        int status)
{
    struct hvd_trace_row *row = hvd_timeline_row_of(timeline, entry);
    int early;

    if (row == NULL) {
        return;
    }
    if (row->state == HVD_ROW_NEGOTIATING) {
        end_negotiation(timeline, row,
                        status == 0 ? hvd_kind_name(entry->descriptor.kind) : "ERROR");
    } else if (is_open(row)) {
        end_row(timeline, row, status == 0 ? hvd_timeline_describe(entry) : NULL);
    }
    row->state = HVD_ROW_IDLE;
    early = row->early_count;
    row->early_count = 0;
    for (int i = 0; i < early; i++) {
        note_ready(timeline, row, entry->descriptor.kind, row->early[i]);
    }
}

/* Returns the row that shows this message or, with is_new, a free row for it. NULL: there
 * is none. */
static struct hvd_trace_row *find_message_row(struct hvd_timeline *timeline,
                                              const struct hvd_entry *entry, bool is_new)
{
    const void *message = is_new ? NULL : entry;

    for (int i = 1; i <= MESSAGE_ROWS; i++) {
        char name[NAME_BYTES];
        struct hvd_trace_row *row;

        hvd_timeline_name_p2p(entry, i, name, sizeof(name));
        row = is_new ? hvd_trace_rows_make(&timeline->rows, entry->descriptor.set, name)
                     : hvd_trace_rows_find(&timeline->rows, entry->descriptor.set, name);
        if (row == NULL ||
            (row->message == message && (!is_new || row->state == HVD_ROW_IDLE))) {
            return row;
        }
    }
    return NULL;
}

void hvd_timeline_p2p_started(struct hvd_timeline *timeline,
                              const struct hvd_entry *entry)
{
    struct hvd_trace_row *row;

    if (!hvd_timeline_is_on(timeline)) {
        return;
    }
    row = hvd_timeline_has_room(timeline, EVENTS_PER_TENSOR + 1)
              ? find_message_row(timeline, entry, true)
              : NULL;
    if (row == NULL) {
        timeline->dropped++;
        return;
    }
    tell_dropped(timeline);
    if (row->number == 0) {
        put_label(timeline, row);
    }
    put_begin(timeline, row,
              entry->descriptor.kind == HVD_KIND_SEND ? "SEND" : "RECEIVE");
    row->state = HVD_ROW_NEGOTIATING;
    row->message = entry;
    timeline->open_count++;
}

void hvd_timeline_p2p_ended(struct hvd_timeline *timeline, const struct hvd_entry *entry,
                            int status)
{
    struct hvd_trace_row *row =
        hvd_timeline_is_on(timeline) ? find_message_row(timeline, entry, false) : NULL;

    if (row == NULL) {
        return;
    }
    row->message = NULL;
    if (status == 0) {
        end_row(timeline, row, hvd_timeline_describe_p2p(entry));
    } else {
        end_negotiation(timeline, row, "ERROR");
    }
}

void hvd_timeline_cycle(struct hvd_timeline *timeline)
{
    struct hvd_trace_event event = {.kind = HVD_TRACE_CYCLE};

    if (hvd_timeline_is_on(timeline) && timeline->marks_cycles) {
        if (hvd_timeline_has_room(timeline, 1)) {
            hvd_timeline_put(timeline, event);
        } else {
            timeline->dropped++;
        }
    }
}

void hvd_timeline_end_rows(struct hvd_timeline *timeline)
{
    for (struct hvd_trace_row *row = timeline->rows.first; row != NULL; row = row->next) {
        if (is_open(row)) {
            end_row(timeline, row, NULL);
        }
    }
    tell_dropped(timeline);
    hvd_trace_rows_finish(&timeline->rows);
}

/* --- the queue --- */

int hvd_timeline_open_queue(struct hvd_timeline *timeline, hvd_trace_sink sink,
                            int pause_ms, struct hvd_error *err)
{
    struct hvd_trace_queue_options options = {
        .capacity = QUEUE_EVENTS,
        .text_bytes = QUEUE_TEXT_BYTES,
        .pause_ms = pause_ms,
        .sink = sink,
        .context = timeline,
    };
    int status;

    timeline->frame = (struct hvd_trace_frame){
        .rank = timeline->config.of_all_ranks ? timeline->config.boot->rank : -1,
        .shift_ns = -timeline->start_ns,
    };
    timeline->opened_ns = hvd_clock_ns();
    timeline->open_count = 0;
    timeline->dropped = 0;
    status = hvd_trace_queue_create(&options, &timeline->queue, err);
    timeline->is_on = status == 0;
    return status;
}

void hvd_timeline_close_queue(struct hvd_timeline *timeline)
{
    if (timeline->queue == NULL) {
        return;
    }
    hvd_timeline_end_rows(timeline);
    timeline->is_on = false;
    hvd_trace_queue_destroy(timeline->queue);
    timeline->queue = NULL;
}
