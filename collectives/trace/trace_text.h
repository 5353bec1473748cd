/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a timeline as lines of JSON, in the form that chrome://tracing and
 * Perfetto read ("Trace Event Format"). Pure.
 *
 * There are two pictures. Of one rank, as Horovod draws it: each tensor is a "process".
 * Of all ranks: each rank is a "process" and each of its tensors a "thread". */
#ifndef HVD_TRACE_TEXT_H
#define HVD_TRACE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* The longest text of one event. So that it holds: names are cut after so many bytes of
 * JSON. */
#define HVD_TRACE_TEXT_BYTES 3072
#define HVD_TRACE_NAME_BYTES 768
#define HVD_TRACE_MOST_SPANS 14

/* Rows on a device whose times are kept apart; numbers are given one after the other, so
 * whoever has the same place is long gone. */
#define HVD_TRACE_DEVICE_ROWS 4096

enum hvd_trace_kind {
    HVD_TRACE_ROW, /* text: the name of the tensor that has this row from now on */
    HVD_TRACE_BEGIN, /* name */
    HVD_TRACE_END, /* text: JSON of the arguments, or NULL */
    HVD_TRACE_READY, /* number: a rank that has become ready */
    HVD_TRACE_CYCLE, /* a round of agreement */
    HVD_TRACE_DROPPED, /* number: so many events are missing here */
    HVD_TRACE_LINES, /* text: lines that another rank has made */
    /* text: the name of the row's other half, on a device, in the picture of all ranks */
    HVD_TRACE_DEVICE_ROW,
    /* text: struct hvd_trace_span[number], in the first one of which are the others, one
     * after the other: in the row's half on the device */
    HVD_TRACE_DEVICE,
};

/* What took some time. */
struct hvd_trace_span {
    const char *name; /* outlives the event; A-Z, 0-9 and _ only */
    int64_t begin_ns; /* CLOCK_MONOTONIC of this rank */
    int64_t end_ns;
};

struct hvd_trace_event {
    enum hvd_trace_kind kind;
    int row; /* of a tensor, from 1 on; 0 is no tensor's */
    int64_t number;
    int64_t at_ns; /* CLOCK_MONOTONIC of this rank */
    const char *name; /* outlives the event; A-Z, 0-9 and _ only */
    char *text; /* owned by whoever has the event */
};

/* Whose events, and how this rank's clock becomes the time in the trace. */
struct hvd_trace_frame {
    int rank; /* -1 in the picture of one rank */
    int64_t shift_ns; /* to be added to at_ns */
    int64_t last_us; /* the latest time that was written: time never goes back */
    int64_t device_us[HVD_TRACE_DEVICE_ROWS]; /* nor does it there */
};

/* Writes an event (not HVD_TRACE_LINES) as one or more lines, each a JSON object and
 * '\n', to out, which has HVD_TRACE_TEXT_BYTES. Returns the number of bytes, no '\0'. */
size_t hvd_trace_text(const struct hvd_trace_event *event, struct hvd_trace_frame *frame,
                      char *out);

/* The name of a process: "rank 3 on node7"; with since_epoch_us other than 0 also when
 * the trace started, which only the first process tells. host NULL: no name, as in the
 * picture of one rank. out and result as above. */
size_t hvd_trace_process(int rank, const char *host, int64_t since_epoch_us, char *out);

/* How exact the times of a rank are, as a label of its process: "clock within 12 us". */
size_t hvd_trace_exactness(int rank, int64_t error_us, char *out);

#endif
