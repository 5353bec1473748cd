/* SPDX-License-Identifier: Apache-2.0 */
/* Has the job begun to repeat itself? */
#include "collectives/forecast.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/coordinator.h"

static const int first_needed = 2;
static const int most_needed = 1024;

/* More tensors than any model has: what repeats this seldom is not worth a plan. */
static const size_t most_tensors = 100000;

void hvd_forecast_init(struct hvd_forecast *forecast)
{
    *forecast = (struct hvd_forecast){
        .cycle = 2,
        .needed = first_needed,
        .may_merge = true,
    };
}

void hvd_forecast_finish(struct hvd_forecast *forecast)
{
    free(forecast->tensors);
    free(forecast->batches);
    *forecast = (struct hvd_forecast){0};
}

static void begin_cycle(struct hvd_forecast *forecast)
{
    forecast->cycle++;
    forecast->count = 0;
    forecast->batch_count = 0;
    forecast->is_other = false;
}

void hvd_forecast_restart(struct hvd_forecast *forecast)
{
    begin_cycle(forecast);
    forecast->cycle++; /* no tensor was in the one before */
    forecast->period = 0;
    forecast->repeats = 0;
}

void hvd_forecast_was_wrong(struct hvd_forecast *forecast)
{
    hvd_forecast_restart(forecast);
    forecast->may_merge = false;
    if (forecast->needed < most_needed) {
        forecast->needed *= 2;
    }
}

static int reserve(struct hvd_forecast *forecast, size_t count)
{
    if (forecast->count + count > forecast->capacity) {
        size_t capacity = 2 * (forecast->count + count);
        struct hvd_known **tensors =
            realloc(forecast->tensors, capacity * sizeof(tensors[0]));

        if (tensors == NULL) {
            return HVD_ERR_NOMEM;
        }
        forecast->tensors = tensors;
        forecast->capacity = capacity;
    }
    if (forecast->batch_count == forecast->batch_capacity) {
        size_t capacity = 2 * forecast->batch_capacity + 16;
        struct hvd_forecast_batch *batches =
            realloc(forecast->batches, capacity * sizeof(batches[0]));

        if (batches == NULL) {
            return HVD_ERR_NOMEM;
        }
        forecast->batches = batches;
        forecast->batch_capacity = capacity;
    }
    return 0;
}

/* A tensor comes back before the cycle before has been repeated: what has been seen since is the
 * cycle to be repeated. */
static void close_cycle(struct hvd_forecast *forecast)
{
    forecast->period = forecast->count;
    forecast->repeats = 0;
    begin_cycle(forecast);
}

static bool comes_back(const struct hvd_forecast *forecast,
                       struct hvd_known *const *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (tensors[i]->cycle == forecast->cycle) {
            return true;
        }
    }
    return false;
}

static void append(struct hvd_forecast *forecast, struct hvd_known *const *tensors,
                   size_t count, const struct hvd_forecast_batch *batch)
{
    struct hvd_forecast_batch *added = &forecast->batches[forecast->batch_count++];

    *added = *batch;
    added->first = forecast->count;
    added->count = count;
    for (size_t i = 0; i < count; i++) {
        forecast->is_other |= tensors[i]->cycle != forecast->cycle - 1;
        tensors[i]->cycle = forecast->cycle;
        forecast->tensors[forecast->count++] = tensors[i];
    }
}

int hvd_forecast_note(struct hvd_forecast *forecast, struct hvd_known *const *tensors,
                      size_t count, const struct hvd_forecast_batch *batch)
{
    if (forecast->count + count > most_tensors) {
        hvd_forecast_restart(forecast);
    }
    if (comes_back(forecast, tensors, count)) {
        close_cycle(forecast);
    }
    if (reserve(forecast, count) != 0) {
        return HVD_ERR_NOMEM;
    }
    append(forecast, tensors, count, batch);
    if (forecast->is_other || forecast->count != forecast->period) {
        return 0;
    }
    forecast->repeats++;
    if (forecast->repeats >= forecast->needed) {
        return 1;
    }
    begin_cycle(forecast);
    return 0;
}

void hvd_forecast_wait(struct hvd_forecast *forecast)
{
    begin_cycle(forecast);
}

static bool fuses(const struct hvd_forecast *forecast, const struct hvd_forecast_batch *a,
                  const struct hvd_forecast_batch *b)
{
    const struct hvd_proposal *one = forecast->tensors[a->first]->proposal;
    const struct hvd_proposal *other = forecast->tensors[b->first]->proposal;

    return one->kind == other->kind && one->dtype == other->dtype &&
           one->op == other->op && one->device == other->device &&
           one->prescale == other->prescale && one->postscale == other->postscale;
}

void hvd_forecast_merge(struct hvd_forecast *forecast, int64_t threshold,
                        int64_t cycle_ns)
{
    size_t kept = 0;

    for (size_t i = 1; forecast->may_merge && i < forecast->batch_count; i++) {
        struct hvd_forecast_batch *last = &forecast->batches[kept];
        struct hvd_forecast_batch *next = &forecast->batches[i];

        if (next->overlaps && last->lane == HVD_LANE_QUICK &&
            next->lane == HVD_LANE_QUICK &&
            next->decided_ns - last->decided_ns <= cycle_ns &&
            last->bytes + next->bytes <= threshold && fuses(forecast, last, next)) {
            last->bytes += next->bytes;
            last->count += next->count;
        } else {
            forecast->batches[++kept] = *next;
        }
    }
    if (forecast->may_merge && forecast->batch_count > 0) {
        forecast->batch_count = kept + 1;
    }
    for (size_t i = 0; i < forecast->batch_count; i++) {
        if (forecast->batches[i].bytes >= HVD_BULK_BYTES) {
            forecast->batches[i].lane = HVD_LANE_BULK;
        }
    }
}
