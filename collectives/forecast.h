/* SPDX-License-Identifier: Apache-2.0 */
/* Has the job begun to repeat itself? Rank 0 watches its own answers. Pure.
 *
 * A cycle (a training step) is a row of batches of known tensors, each tensor once. When the
 * same tensors have made up some cycles in a row, in whatever order, the next cycles can be
 * foretold: the batches of the last one, those put together that came within one cycle time
 * of each other and did not wait for each other. */
#ifndef HVD_FORECAST_H
#define HVD_FORECAST_H

#include "collectives/batch.h"
#include "collectives/known.h"

struct hvd_forecast_batch {
    enum hvd_lane lane;
    int64_t bytes;
    int64_t decided_ns;
    bool overlaps; /* the one before was still running here */
    size_t first; /* tensors[first] ... tensors[first + count - 1] */
    size_t count;
};

struct hvd_forecast {
    struct hvd_known **tensors; /* of the present cycle, [count] */
    size_t count;
    size_t capacity;
    struct hvd_forecast_batch *batches;
    size_t batch_count;
    size_t batch_capacity;
    uint64_t cycle; /* number of the present one; from 2 */
    size_t period; /* tensors of the cycle before; 0: there was none */
    bool is_other; /* the present one has a tensor that the one before had not */
    int repeats; /* cycles in a row with the same tensors as the one before */
    int needed; /* repeats before it is foretold */
    bool may_merge;
};

void hvd_forecast_init(struct hvd_forecast *forecast);
void hvd_forecast_finish(struct hvd_forecast *forecast);

/* Takes note of a batch that has been decided; all its tensors are known. Returns 1 when the
 * next cycle can be foretold and begins now, 0, or HVD_ERR_NOMEM. */
int hvd_forecast_note(struct hvd_forecast *forecast, struct hvd_known *const *tensors,
                      size_t count, const struct hvd_forecast_batch *batch);

/* It could be foretold, but not now: try after the next cycle. */
void hvd_forecast_wait(struct hvd_forecast *forecast);

/* Puts batches together; then tensors and batches are what to plan. threshold: bytes. */
void hvd_forecast_merge(struct hvd_forecast *forecast, int64_t threshold,
                        int64_t cycle_ns);

/* Starts over: a tensor is evicted, or a plan has begun. */
void hvd_forecast_restart(struct hvd_forecast *forecast);

/* The forecast was wrong: be slower to make the next one. */
void hvd_forecast_was_wrong(struct hvd_forecast *forecast);

#endif
