/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline of all ranks: how events get from every rank to rank 0.
 *
 *   rank 0   START down: when the recording began, by rank 0's clock
 *   others   TRACE up, forwarded to rank 0: lines of JSON, ready to be written
 *   rank 0   STOP down
 *   others   TRACE up, marked as the last one; also when the rank leaves the job
 *
 * The queue's thread of each rank makes the lines, and the progress thread sends them, a
 * parcel at a time. The first parcel waits until the difference between this clock and
 * rank 0's is known. Recordings are numbered, because one may begin before all TRACE
 * messages of the previous one have come. */
#include <stdlib.h>
#include <string.h>

#include "collectives/trace/timeline_state.h"

enum {
    PARCEL_BYTES = 256 * 1024, /* 3,000 events; delays other messages by 100 us */
    SEND_PAUSE_MS = 100,
};

/* The payload of START and STOP. */
struct order {
    int64_t start_ns;
    uint32_t generation;
    uint32_t unused;
};

/* Precedes the lines in a message. */
struct head {
    uint32_t generation;
    uint32_t is_last;
};

int hvd_timeline_init_ranks(struct hvd_timeline *timeline)
{
    atomic_init(&timeline->is_due, false);
    atomic_init(&timeline->has_order, false);
    if (timeline->config.uplink != NULL) {
        hvd_clock_sync_init(&timeline->clock, timeline->config.uplink,
                            timeline->config.boot);
    }
    return pthread_mutex_init(&timeline->parcel.lock, NULL) == 0 ? 0 : HVD_ERR_NOMEM;
}

void hvd_timeline_finish_ranks(struct hvd_timeline *timeline)
{
    pthread_mutex_destroy(&timeline->parcel.lock);
    free(timeline->parcel.data);
}

/* --- rank 0 --- */

static int tell_ranks(struct hvd_timeline *timeline, uint32_t type)
{
    struct order order = {
        .start_ns = timeline->start_ns,
        .generation = timeline->generation,
    };

    if (!timeline->config.of_all_ranks || timeline->config.boot->size == 1) {
        return 0;
    }
    return hvd_uplink_send_down(timeline->config.uplink, type, &order, sizeof(order));
}

int hvd_timeline_tell_start(struct hvd_timeline *timeline)
{
    timeline->ranks_heard = 0;
    return tell_ranks(timeline, HVD_MESSAGE_TRACE_START);
}

int hvd_timeline_tell_stop(struct hvd_timeline *timeline)
{
    return tell_ranks(timeline, HVD_MESSAGE_TRACE_STOP);
}

void hvd_timeline_end(struct hvd_timeline *timeline)
{
    if (timeline != NULL && timeline->is_on && timeline->config.boot->rank == 0) {
        hvd_timeline_end_rows(timeline);
        timeline->is_on = false;
        hvd_timeline_tell_stop(timeline);
    }
}

bool hvd_timeline_has_ended(const struct hvd_timeline *timeline)
{
    return timeline == NULL || timeline->queue == NULL ||
           !timeline->config.of_all_ranks ||
           timeline->ranks_heard >= timeline->config.boot->size - 1;
}

static void on_trace(struct hvd_timeline *timeline, const void *payload, size_t bytes)
{
    struct head head;

    if (bytes < sizeof(head) || timeline->queue == NULL) {
        return;
    }
    memcpy(&head, payload, sizeof(head));
    if (head.generation != timeline->generation) {
        return;
    }
    hvd_timeline_put_lines(timeline, (const char *)payload + sizeof(head),
                           bytes - sizeof(head));
    timeline->ranks_heard += head.is_last != 0 ? 1 : 0;
}

/* --- other ranks --- */

/* Called by the queue's thread. Adds a label that says how exact the following times are,
 * if that has changed much. */
static void make_label(struct hvd_timeline *timeline, int64_t error_ns)
{
    struct hvd_timeline_parcel *parcel = &timeline->parcel;
    int64_t error_us = error_ns / 1000 + 1;
    int64_t told_us = timeline->told_error_us;

    if (error_us > told_us + told_us / 4 || error_us < told_us - told_us / 4) {
        timeline->told_error_us = error_us;
        parcel->bytes += hvd_trace_exactness(timeline->config.boot->rank, error_us,
                                             parcel->data + parcel->bytes);
    }
}

static size_t make_lines(void *context, const struct hvd_trace_event *events,
                         size_t count, bool is_last)
{
    struct hvd_timeline *timeline = context;
    struct hvd_timeline_parcel *parcel = &timeline->parcel;
    int64_t offset_ns, error_ns;
    enum hvd_clock_state state =
        hvd_clock_sync_offset(&timeline->clock, &offset_ns, &error_ns);
    size_t made = 0;

    if (!atomic_load(&timeline->has_order)) {
        return is_last ? count : 0;
    }
    if (state == HVD_CLOCK_UNKNOWN || (state == HVD_CLOCK_ROUGH && !is_last)) {
        /* come back when the clock has been measured */
        timeline->config.wake(timeline->config.context);
        return is_last ? count : 0;
    }
    timeline->frame.shift_ns = offset_ns - timeline->start_ns;
    pthread_mutex_lock(&parcel->lock);
    while (made < count &&
           parcel->bytes + HVD_TRACE_TEXT_BYTES <= PARCEL_BYTES - HVD_TRACE_TEXT_BYTES) {
        if (made == 0) {
            make_label(timeline, error_ns);
        }
        parcel->bytes += hvd_trace_text(&events[made++], &timeline->frame,
                                        parcel->data + parcel->bytes);
    }
    pthread_mutex_unlock(&parcel->lock);
    atomic_store(&timeline->is_due, true);
    timeline->config.wake(timeline->config.context);
    return is_last ? count : made;
}

/* Sends a head and `bytes` bytes of lines. The buffer at data begins with room for the
 * head. */
static void send_lines(struct hvd_timeline *timeline, char *data, size_t bytes,
                       bool is_last)
{
    struct head head = {.generation = timeline->generation, .is_last = is_last};

    memcpy(data, &head, sizeof(head));
    /* Without memory, these events are missing. */
    (void)hvd_uplink_send_up(timeline->config.uplink, HVD_MESSAGE_TRACE, data,
                             sizeof(head) + bytes);
}

static void send_parcel(struct hvd_timeline *timeline)
{
    struct hvd_timeline_parcel *parcel = &timeline->parcel;
    size_t bytes;

    pthread_mutex_lock(&parcel->lock);
    atomic_store(&timeline->is_due, false);
    bytes = parcel->bytes - sizeof(struct head);
    if (bytes > 0) {
        send_lines(timeline, parcel->data, bytes, false);
        parcel->bytes = sizeof(struct head);
    }
    pthread_mutex_unlock(&parcel->lock);
}

/* Begins to record on this rank; if memory is out, the rank is missing in the
 * timeline. */
static void begin_recording(struct hvd_timeline *timeline)
{
    struct hvd_timeline_parcel *parcel = &timeline->parcel;

    timeline->config.of_all_ranks = true;
    timeline->told_error_us = 0;
    if (parcel->data == NULL) {
        parcel->data = malloc(PARCEL_BYTES);
    }
    parcel->bytes = sizeof(struct head);
    if (parcel->data != NULL) {
        (void)hvd_timeline_open_queue(timeline, make_lines, SEND_PAUSE_MS, NULL);
    }
}

void hvd_timeline_expect(struct hvd_timeline *timeline)
{
    if (timeline != NULL && timeline->config.boot->rank != 0) {
        begin_recording(timeline);
    }
}

static void on_start(struct hvd_timeline *timeline, const struct order *order)
{
    if (atomic_load(&timeline->has_order)) {
        hvd_timeline_close_queue(timeline);
        atomic_store(&timeline->has_order, false);
    }
    timeline->generation = order->generation;
    timeline->start_ns = order->start_ns;
    atomic_store(&timeline->has_order, true);
    if (timeline->queue == NULL) {
        begin_recording(timeline);
    }
}

static void end_recording(struct hvd_timeline *timeline)
{
    char nothing[sizeof(struct head)];

    if (timeline->queue != NULL) {
        hvd_timeline_close_queue(timeline);
        send_parcel(timeline);
    }
    send_lines(timeline, nothing, 0, true);
    atomic_store(&timeline->has_order, false);
}

static void on_order(struct hvd_timeline *timeline, const struct hvd_uplink_event *event)
{
    struct order order;

    if (event->bytes != sizeof(order)) {
        return;
    }
    memcpy(&order, event->payload, sizeof(order));
    (void)hvd_uplink_send_down(timeline->config.uplink, event->type, &order,
                               sizeof(order));
    if (event->type == HVD_MESSAGE_TRACE_START) {
        on_start(timeline, &order);
    } else {
        end_recording(timeline);
    }
}

void hvd_timeline_leave(struct hvd_timeline *timeline)
{
    if (timeline != NULL && timeline->queue != NULL && timeline->config.boot->rank != 0) {
        end_recording(timeline);
    }
}

/* --- every rank --- */

void hvd_timeline_progress(struct hvd_timeline *timeline)
{
    if (timeline == NULL || !timeline->is_on) {
        return;
    }
    if (timeline->config.boot->rank == 0) {
        if (atomic_load(&timeline->has_failed)) {
            hvd_timeline_end(timeline);
        }
        return;
    }
    if (atomic_load(&timeline->is_due)) {
        send_parcel(timeline);
    }
    /* Without memory, the clock stays unknown, and nothing is sent. */
    (void)hvd_clock_sync_progress(&timeline->clock);
}

static void on_up(struct hvd_timeline *timeline, const struct hvd_uplink_event *event)
{
    if (timeline->config.boot->rank == 0) {
        on_trace(timeline, event->payload, event->bytes);
    } else {
        (void)hvd_uplink_send_up(timeline->config.uplink, event->type, event->payload,
                                 event->bytes);
    }
}

bool hvd_timeline_on_message(struct hvd_timeline *timeline,
                             const struct hvd_uplink_event *event)
{
    if (timeline == NULL) {
        return false;
    }
    switch (event->type) {
    case HVD_MESSAGE_TRACE_START:
    case HVD_MESSAGE_TRACE_STOP:
        on_order(timeline, event);
        return true;
    case HVD_MESSAGE_TRACE:
        on_up(timeline, event);
        return true;
    case HVD_MESSAGE_CLOCK_ASK:
        hvd_clock_sync_on_ask(&timeline->clock, event);
        return true;
    case HVD_MESSAGE_CLOCK_ANSWER:
        hvd_clock_sync_on_answer(&timeline->clock, event);
        return true;
    default:
        return false;
    }
}
