/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the events of a timeline as lines of JSON, in the format of chrome://tracing and
 * Perfetto ("Trace Event Format"). Pure.
 *
 * There are two pictures. In the picture of one rank, which is Horovod's, each tensor is
 * a "process". In the picture of all ranks, each rank is a "process" and each of its
 * tensors a "thread". */
#ifndef HVD_TRACE_TEXT_H
#define HVD_TRACE_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* The longest text of one event. To keep to it, names are cut to HVD_TRACE_NAME_BYTES
 * bytes of JSON. */
#define HVD_TRACE_TEXT_BYTES 3072
#define HVD_TRACE_NAME_BYTES 768
#define HVD_TRACE_MOST_SPANS 14

/* The number of entries of device_us. Rows of GPUs are numbered in sequence; two rows
 * share an entry only if their numbers are 4096 apart, and the older one is out of use by
 * then. */
#define HVD_TRACE_DEVICE_ROWS 4096

enum hvd_trace_kind {
    HVD_TRACE_ROW, /* text: the name of the tensor that uses this row from now on */
    HVD_TRACE_BEGIN, /* name */
    HVD_TRACE_END, /* text: JSON of the arguments, or NULL */
    HVD_TRACE_READY, /* number: a rank that has submitted the tensor */
    HVD_TRACE_CYCLE, /* a round of agreement */
    HVD_TRACE_DROPPED, /* number: how many events are missing here */
    HVD_TRACE_LINES, /* text: lines made by another rank */
    /* text: the name of the row's half for a GPU, in the picture of all ranks */
    HVD_TRACE_DEVICE_ROW,
    /* text: struct hvd_trace_span[number], for the row's half for a GPU. The first span
     * contains the others, which follow one another. */
    HVD_TRACE_DEVICE,
};

/* An activity with its beginning and end. */
struct hvd_trace_span {
    const char *name; /* outlives the event; A-Z, 0-9 and _ only */
    int64_t begin_ns; /* CLOCK_MONOTONIC of this rank */
    int64_t end_ns;
};

struct hvd_trace_event {
    enum hvd_trace_kind kind;
    int row; /* row of a tensor, from 1 on; 0: not about a tensor */
    int64_t number;
    int64_t at_ns; /* CLOCK_MONOTONIC of this rank */
    const char *name; /* outlives the event; A-Z, 0-9 and _ only */
    char *text; /* owned by the event's present owner */
};

/* The rank of the events, and how its clock is converted to the time in the trace. */
struct hvd_trace_frame {
    int rank; /* -1 in the picture of one rank */
    int64_t shift_ns; /* added to at_ns to get the time in the trace */
    int64_t last_us; /* the latest time written: times never go back */
    /* the latest time written in each GPU row */
    int64_t device_us[HVD_TRACE_DEVICE_ROWS];
};

/* Writes an event (not HVD_TRACE_LINES) as one or more lines to out, which has
 * HVD_TRACE_TEXT_BYTES bytes; each line is a JSON object and '\n'. Returns the number of
 * bytes; there is no '\0'. */
size_t hvd_trace_text(const struct hvd_trace_event *event, struct hvd_trace_frame *frame,
                      char *out);

/* Writes the name of a process, "rank 3 on node7", and the time when the trace started.
 * host is NULL in the picture of one rank: no name is written. since_epoch_us is 0 for
 * all processes but the first: no time is written. out and the result are as for
 * hvd_trace_text. */
size_t hvd_trace_process(int rank, const char *host, int64_t since_epoch_us, char *out);

/* Writes how exact a rank's times are, as a label of its process: "clock within 12
 * us". */
size_t hvd_trace_exactness(int rank, int64_t error_us, char *out);

#endif
