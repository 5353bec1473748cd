/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors of a timeline by process set and name, and what is going on in each.
 * Pure. */
#ifndef HVD_TRACE_ROWS_H
#define HVD_TRACE_ROWS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    HVD_ROW_DEPTH = 2 /* ALLREDUCE, and in it QUEUE */
};

struct hvd_trace_row {
    struct hvd_trace_row *next;
    int32_t set;
    const char *name; /* owned */
    int number; /* from 1 on */
    bool has_device; /* its half on a device has a label */
    int64_t device_ns; /* what is known there has ended */
    enum {
        HVD_ROW_IDLE,
        HVD_ROW_SKIPPED, /* the tensor is left out for want of room */
        HVD_ROW_NEGOTIATING, /* or a message is under way */
        HVD_ROW_WAITING, /* agreed */
        HVD_ROW_RUNNING,
    } state;
    uint64_t ranges[HVD_ROW_DEPTH]; /* of a profiler (ranges.h), for what has begun */
    int depth; /* so much has */
    const void *message; /* that is under way, NULL: it is no message's row, or none is */
    int *early; /* [early_count] ranks that are ready for the next tensor of this name */
    int early_count;
    int early_capacity;
};

/* Zeroed: none. */
struct hvd_trace_rows {
    void *by_name; /* tsearch tree */
    struct hvd_trace_row *first;
    int count;
    int last_number; /* that was given */
};

/* Borrowed until rows are forgotten. find: NULL when there is none. make: one that has no
 * number yet if there is none; NULL without memory. When there are too many (65,536),
 * make forgets the idle ones first: a name that comes again then gets a new row. */
struct hvd_trace_row *hvd_trace_rows_find(const struct hvd_trace_rows *rows, int32_t set,
                                          const char *name);
struct hvd_trace_row *hvd_trace_rows_make(struct hvd_trace_rows *rows, int32_t set,
                                          const char *name);

/* Keeps that a rank is ready too early, for so many ranks at most. Without memory it is
 * forgotten. */
void hvd_trace_row_keep_early(struct hvd_trace_row *row, int rank, int most);

/* Frees all. */
void hvd_trace_rows_finish(struct hvd_trace_rows *rows);

#endif
