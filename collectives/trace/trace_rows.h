/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a timeline, by process set and name of their tensor, and the state of each.
 * Pure. */
#ifndef HVD_TRACE_ROWS_H
#define HVD_TRACE_ROWS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    HVD_ROW_DEPTH = 2 /* nested activities: ALLREDUCE, and QUEUE in it */
};

struct hvd_trace_row {
    struct hvd_trace_row *next;
    int32_t set;
    const char *name; /* owned */
    int number; /* from 1 on; 0: none yet */
    bool has_device; /* its second half, for a GPU, has a label */
    int64_t device_ns; /* end of the last activity in that half */
    enum {
        HVD_ROW_IDLE,
        HVD_ROW_SKIPPED, /* the tensor is left out because the queue is full */
        /* the ranks have not agreed on the tensor yet, or a message is in flight */
        HVD_ROW_NEGOTIATING,
        HVD_ROW_WAITING, /* the ranks have agreed; earlier batches run */
        HVD_ROW_RUNNING,
    } state;
    /* a profiler's ranges (ranges.h) for the activities that have begun */
    uint64_t ranges[HVD_ROW_DEPTH];
    int depth; /* activities that have begun */
    /* the message in flight; NULL if there is none, or the row is that of a tensor */
    const void *message;
    int *early; /* [early_count] ranks that have submitted the next tensor of this name */
    int early_count;
    int early_capacity;
};

/* All zeros: no rows. */
struct hvd_trace_rows {
    void *by_name; /* tsearch tree */
    struct hvd_trace_row *first;
    int count;
    int last_number; /* the highest number of a row */
};

/* Return the row of a tensor, borrowed until rows are removed. find returns NULL if there
 * is none. make creates it, without a number; NULL if memory is out. When there are too
 * many rows (65,536), make removes those that are idle: a name that comes again later
 * gets a new row. */
struct hvd_trace_row *hvd_trace_rows_find(const struct hvd_trace_rows *rows, int32_t set,
                                          const char *name);
struct hvd_trace_row *hvd_trace_rows_make(struct hvd_trace_rows *rows, int32_t set,
                                          const char *name);

/* Remembers that a rank has submitted the next tensor of this name, for up to `most`
 * ranks; does nothing if memory is out. */
void hvd_trace_row_keep_early(struct hvd_trace_row *row, int rank, int most);

/* Frees all rows. */
void hvd_trace_rows_finish(struct hvd_trace_rows *rows);

#endif
