/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the events of a timeline as lines of JSON. */
#include "collectives/trace/trace_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gpu_binding/base/attr.h"
#include "gpu_binding/base/json.h"

/* The lines of one event. */
struct page {
    char *text; /* [HVD_TRACE_TEXT_BYTES] */
    size_t bytes;
};

static void add_text(struct page *page, const char *format, ...) HVD_PRINTF(2, 3);

static void add_text(struct page *page, const char *format, ...)
{
    size_t room = HVD_TRACE_TEXT_BYTES - page->bytes;
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(page->text + page->bytes, room, format, args);
    va_end(args);
    page->bytes += (size_t)n < room ? (size_t)n : room - 1;
}

/* Offset of the GPU's rows in the picture of all ranks. */
enum {
    DEVICE_THREADS = 1000000
};

static void add_name_and_sort(struct page *page, const char *what, const char *where,
                              const char *name, int sort)
{
    char escaped[HVD_TRACE_NAME_BYTES];

    hvd_json_escape(name, escaped, sizeof(escaped));
    add_text(
        page,
        "{\"name\": \"%s_name\", \"ph\": \"M\", %s, \"args\": {\"name\": \"%s\"}}\n"
        "{\"name\": \"%s_sort_index\", \"ph\": \"M\", %s, \"args\": {\"sort_index\": "
        "%d}}\n",
        what, where, escaped, what, where, sort);
}

/* Writes the row's identity in the trace: "pid": 3, or "pid": RANK, "tid": 3. */
static void print_place(const struct hvd_trace_frame *frame, int row, char text[64])
{
    if (frame->rank < 0) {
        snprintf(text, 64, "\"pid\": %d", row);
    } else {
        snprintf(text, 64, "\"pid\": %d, \"tid\": %d", frame->rank, row);
    }
}

static int64_t time_us(const struct hvd_trace_event *event, struct hvd_trace_frame *frame)
{
    int64_t us = (event->at_ns + frame->shift_ns) / 1000;

    if (us > frame->last_us) {
        frame->last_us = us;
    }
    return frame->last_us;
}

/* --- on a device --- */

/* Writes the same for the GPU's half of a row: "pid": 3, "tid": 1, or "pid": RANK, "tid":
 * 1000003. */
static void place_on_device(const struct hvd_trace_frame *frame, int row, char text[64])
{
    if (frame->rank < 0) {
        snprintf(text, 64, "\"pid\": %d, \"tid\": 1", row);
    } else {
        snprintf(text, 64, "\"pid\": %d, \"tid\": %d", frame->rank, DEVICE_THREADS + row);
    }
}

static int64_t device_us(int64_t at_ns, int row, struct hvd_trace_frame *frame)
{
    int64_t us = (at_ns + frame->shift_ns) / 1000;
    int64_t *last_us = &frame->device_us[row % HVD_TRACE_DEVICE_ROWS];

    if (us > *last_us) {
        *last_us = us;
    }
    return *last_us;
}

static void add_begin(struct page *page, const char *name, int64_t us, const char *where)
{
    add_text(page, "{\"ph\": \"B\", \"name\": \"%s\", \"ts\": %" PRId64 ", %s}\n", name,
             us, where);
}

static void add_end(struct page *page, int64_t us, const char *where)
{
    add_text(page, "{\"ph\": \"E\", \"ts\": %" PRId64 ", %s}\n", us, where);
}

static void add_device(struct page *page, const struct hvd_trace_event *event,
                       struct hvd_trace_frame *frame, const char *where)
{
    struct hvd_trace_span spans[HVD_TRACE_MOST_SPANS];
    int count = (int)event->number;

    memcpy(spans, event->text, (size_t)count * sizeof(spans[0]));
    for (int i = 0; i < count; i++) {
        add_begin(page, spans[i].name, device_us(spans[i].begin_ns, event->row, frame),
                  where);
        if (i > 0) {
            add_end(page, device_us(spans[i].end_ns, event->row, frame), where);
        }
    }
    add_end(page, device_us(spans[0].end_ns, event->row, frame), where);
}

/* --- one event --- */

static void add_marker(struct page *page, const struct hvd_trace_event *event, int64_t us,
                       const char *where)
{
    char name[48] = "CYCLE_START";

    if (event->kind == HVD_TRACE_DROPPED) {
        snprintf(name, sizeof(name), "dropped %" PRId64 " events", event->number);
    }
    add_text(page,
             "{\"ph\": \"i\", \"name\": \"%s\", \"ts\": %" PRId64 ", %s, \"s\": \"g\"}\n",
             name, us, where);
}

static void add_timed(struct page *page, const struct hvd_trace_event *event, int64_t us,
                      const char *where)
{
    const char *comma = event->text != NULL ? ", \"args\": " : "";

    switch (event->kind) {
    case HVD_TRACE_BEGIN:
        add_begin(page, event->name, us, where);
        break;
    case HVD_TRACE_END:
        add_text(page, "{\"ph\": \"E\", \"ts\": %" PRId64 ", %s%s%s}\n", us, where, comma,
                 event->text != NULL ? event->text : "");
        break;
    case HVD_TRACE_READY:
        add_text(page,
                 "{\"ph\": \"X\", \"name\": \"%" PRId64 "\", \"ts\": %" PRId64
                 ", %s, \"dur\": 0}\n",
                 event->number, us, where);
        break;
    default:
        add_marker(page, event, us, where);
        break;
    }
}

size_t hvd_trace_text(const struct hvd_trace_event *event, struct hvd_trace_frame *frame,
                      char *out)
{
    struct page page = {.text = out};
    char where[64];

    if (event->kind == HVD_TRACE_DEVICE || event->kind == HVD_TRACE_DEVICE_ROW) {
        place_on_device(frame, event->row, where);
    } else {
        print_place(frame, event->row, where);
    }
    switch (event->kind) {
    case HVD_TRACE_ROW:
        add_name_and_sort(&page, frame->rank < 0 ? "process" : "thread", where,
                          event->text, event->row);
        break;
    case HVD_TRACE_DEVICE_ROW:
        add_name_and_sort(&page, "thread", where, frame->rank < 0 ? "GPU" : event->text,
                          event->row);
        break;
    case HVD_TRACE_DEVICE:
        add_device(&page, event, frame, where);
        break;
    default:
        add_timed(&page, event, time_us(event, frame), where);
    }
    return page.bytes;
}

size_t hvd_trace_process(int rank, const char *host, int64_t since_epoch_us, char *out)
{
    struct page page = {.text = out};
    char escaped[HVD_TRACE_NAME_BYTES];

    add_text(&page,
             "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %d, \"args\": {",
             rank);
    if (host != NULL) {
        hvd_json_escape(host, escaped, sizeof(escaped));
        add_text(&page, "\"name\": \"rank %d on %s\"", rank, escaped);
    }
    if (since_epoch_us != 0) {
        add_text(&page, "%s\"start_time_since_epoch_in_micros\": %" PRId64,
                 host != NULL ? ", " : "", since_epoch_us);
    }
    add_text(
        &page,
        "}}\n{\"name\": \"process_sort_index\", \"ph\": \"M\", \"pid\": %d, \"args\": "
        "{\"sort_index\": %d}}\n",
        rank, rank);
    return page.bytes;
}

size_t hvd_trace_exactness(int rank, int64_t error_us, char *out)
{
    struct page page = {.text = out};

    add_text(&page,
             "{\"name\": \"process_labels\", \"ph\": \"M\", \"pid\": %d, \"args\": "
             "{\"labels\": "
             "\"clock within %" PRId64 " us\"}}\n",
             rank, error_us);
    return page.bytes;
}
