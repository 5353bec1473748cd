/* SPDX-License-Identifier: Apache-2.0 */
/* The second half of a tensor's row: the work that a GPU does for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/trace/timeline_state.h"

static void label_device(struct hvd_timeline *timeline, struct hvd_trace_row *row)
{
    struct hvd_trace_event event = {.kind = HVD_TRACE_DEVICE_ROW, .row = row->number};
    size_t bytes = strlen(row->name) + sizeof(" (GPU)");

    event.text = malloc(bytes);
    if (event.text != NULL) {
        snprintf(event.text, bytes, "%s (GPU)", row->name);
        hvd_timeline_put(timeline, event);
        row->has_device = true;
    }
}

static int64_t later_time(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

/* Writes the GPU's spans to `out`, moved so that they follow one another and the row's
 * earlier spans. out[0] contains all others; out[1] is the wait before them. Returns the
 * number of spans in `out`. */
static int arrange_spans(struct hvd_trace_row *row, enum hvd_kind kind, int64_t since_ns,
                         const struct hvd_trace_span *spans, int count,
                         struct hvd_trace_span out[HVD_TRACE_MOST_SPANS])
{
    int64_t at_ns = later_time(since_ns, row->device_ns);

    out[0] = (struct hvd_trace_span){.name = hvd_kind_name(kind), .begin_ns = at_ns};
    out[1] = (struct hvd_trace_span){.name = "QUEUE", .begin_ns = at_ns};
    at_ns = later_time(at_ns, spans[0].begin_ns);
    out[1].end_ns = at_ns;
    for (int i = 0; i < count; i++) {
        out[i + 2].name = spans[i].name;
        out[i + 2].begin_ns = later_time(at_ns, spans[i].begin_ns);
        at_ns = later_time(out[i + 2].begin_ns, spans[i].end_ns);
        out[i + 2].end_ns = at_ns;
    }
    out[0].end_ns = at_ns;
    row->device_ns = at_ns;
    return count + 2;
}

void hvd_timeline_device(struct hvd_timeline *timeline, const struct hvd_entry *entry,
                         int64_t since_ns, const struct hvd_trace_span *spans, int count)
{
    struct hvd_trace_span arranged[HVD_TRACE_MOST_SPANS];
    const size_t bytes = sizeof(arranged);
    struct hvd_trace_event event = {.kind = HVD_TRACE_DEVICE};
    struct hvd_trace_row *row = hvd_timeline_row_of(timeline, entry);

    if (row == NULL || row->number == 0 || count == 0 || since_ns < timeline->opened_ns) {
        return;
    }
    if (!hvd_timeline_has_room(timeline, 2)) {
        timeline->dropped += 2 * ((int64_t)count + 2);
        return;
    }
    if (!row->has_device) {
        label_device(timeline, row);
    }
    event.row = row->number;
    event.number =
        arrange_spans(row, entry->descriptor.kind, since_ns, spans, count, arranged);
    event.text = malloc(bytes);
    if (event.text != NULL) {
        memcpy(event.text, arranged, bytes);
        hvd_timeline_put(timeline, event);
    }
}
