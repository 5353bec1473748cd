/* SPDX-License-Identifier: Apache-2.0 */
/* The straggler report over time: lateness and waiting time of each rank, in columns.
 *
 * A column stands for one step of the training, or for one batch if nobody counts steps.
 * When the history is full, neighbouring columns are merged, so that memory stays bounded
 * and a long job has the same number of columns as a short one. Pure. */
#ifndef HVD_STRAGGLER_HISTORY_H
#define HVD_STRAGGLER_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/error.h"

enum {
    HVD_HISTORY_COLUMNS = 1024, /* at most; more than a screen can show side by side */
    HVD_HISTORY_CELLS = 1 << 20, /* in all, so that the page stays below 5 MB */
};

struct hvd_straggler_cell {
    uint32_t late_us;
    uint32_t waited_us; /* for later ranks */
};

struct hvd_straggler_column {
    int64_t ended_us; /* end of its last batch, since the report began; 0: no batch */
    int64_t moving_us; /* time that its batches took when all ranks had arrived */
};

struct hvd_straggler_history {
    int size; /* ranks */
    int room; /* columns, a power of two */
    int count; /* columns in use */
    int64_t width; /* steps or batches in a column, a power of two */
    bool has_steps; /* columns stand for steps, not for batches */
    struct hvd_straggler_column *columns; /* [room] */
    struct hvd_straggler_cell *cells; /* [rank * room + column] */
};

/* The performance scores of a rank, from 0 to 1 (best), as NVIDIA's resiliency extension
 * defines them: the time of a reference divided by the rank's own time. */
struct hvd_straggler_scores {
    double relative; /* the reference is the fastest rank */
    double individual; /* the reference is the best time of this rank */
};

int hvd_straggler_history_create(int size, struct hvd_straggler_history **out,
                                 struct hvd_error *err);
/* NULL is fine. */
void hvd_straggler_history_destroy(struct hvd_straggler_history *history);

/* Merges all columns into the first one, and goes on with steps instead of batches. */
void hvd_straggler_history_count_steps(struct hvd_straggler_history *history);

/* Add to the column of a step (or batch), counted from 0: a batch, which took moving_us
 * and ended ended_us after the report began; the lateness of a rank; its waiting time. */
void hvd_straggler_history_add_batch(struct hvd_straggler_history *history, int64_t step,
                                     int64_t moving_us, int64_t ended_us);
void hvd_straggler_history_add_late(struct hvd_straggler_history *history, int64_t step,
                                    int rank, int64_t late_us);
void hvd_straggler_history_add_wait(struct hvd_straggler_history *history, int64_t step,
                                    int rank, int64_t waited_us);

/* Returns the duration of a column, and the part of it in which the rank computed: no
 * batch was under way. */
int64_t hvd_straggler_history_span_us(const struct hvd_straggler_history *history,
                                      int column);
int64_t hvd_straggler_history_computing_us(const struct hvd_straggler_history *history,
                                           int column, int rank);

/* Writes the scores of all ranks to scores[size]. They compare medians over the columns;
 * the individual score compares the last eighth of the job with the rank's best eighth.
 * Differences below a hundredth of a step do not count. Returns 0 or HVD_ERR_NOMEM. */
int hvd_straggler_history_score(const struct hvd_straggler_history *history,
                                struct hvd_straggler_scores *scores);

#endif
