/* SPDX-License-Identifier: Apache-2.0 */
/* Has the job begun to repeat itself? */
#include "collectives/agreement/forecast.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/coordinator.h"

static const int first_needed = 2;
static const int most_needed = 1024;

static const size_t first_recent = 256;

/* A cycle with more tensors is not foretold. */
static const size_t most_recent = 131072;

void hvd_forecast_init(struct hvd_forecast *forecast)
{
    *forecast = (struct hvd_forecast){
        .cycle = 1,
        .guess = 1,
        .needed = first_needed,
        .may_merge = true,
    };
}

void hvd_forecast_finish(struct hvd_forecast *forecast)
{
    free(forecast->tensors);
    free(forecast->batches);
    free(forecast->recent);
    *forecast = (struct hvd_forecast){0};
}

static void begin_cycle(struct hvd_forecast *forecast)
{
    forecast->cycle++;
    forecast->in_cycle = 0;
}

static void guess_again(struct hvd_forecast *forecast)
{
    forecast->period = 0;
    forecast->guess++;
    forecast->repeats = 0;
    forecast->count = 0;
    forecast->batch_count = 0;
    begin_cycle(forecast);
}

void hvd_forecast_restart(struct hvd_forecast *forecast)
{
    guess_again(forecast);
    forecast->first_note = forecast->notes; /* older ones may be gone */
    forecast->votes = 0;
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

/* A ring twice as large, while there is more to remember and it is not longer than any model. */
static int reserve_recent(struct hvd_forecast *forecast)
{
    size_t capacity =
        forecast->recent_capacity > 0 ? 2 * forecast->recent_capacity : first_recent;
    struct hvd_known **recent;

    if (forecast->notes - forecast->first_note < forecast->recent_capacity ||
        forecast->recent_capacity >= most_recent) {
        return 0;
    }
    recent = calloc(capacity, sizeof(recent[0]));
    if (recent == NULL) {
        return HVD_ERR_NOMEM;
    }
    for (uint64_t i = forecast->first_note; i < forecast->notes; i++) {
        recent[i & (capacity - 1)] =
            forecast->recent[i & (forecast->recent_capacity - 1)];
    }
    free(forecast->recent);
    forecast->recent = recent;
    forecast->recent_capacity = capacity;
    return 0;
}

/* Majority vote: in the end the candidate is what more than half of the tensors said. */
static void vote(struct hvd_forecast *forecast, uint64_t gap)
{
    if (gap == forecast->candidate) {
        forecast->votes++;
    } else if (forecast->votes == 0) {
        forecast->candidate = gap;
        forecast->votes = 1;
    } else {
        forecast->votes--;
    }
}

static int note_recent(struct hvd_forecast *forecast, struct hvd_known *tensor)
{
    if (reserve_recent(forecast) != 0) {
        return HVD_ERR_NOMEM;
    }
    if (tensor->noted_at > forecast->first_note) {
        vote(forecast, forecast->notes + 1 - tensor->noted_at);
    }
    forecast->recent[forecast->notes & (forecast->recent_capacity - 1)] = tensor;
    tensor->noted_at = ++forecast->notes;
    return 0;
}

/* Guesses that a cycle is the last `candidate` tensors, when enough of them say so. */
static void guess(struct hvd_forecast *forecast)
{
    uint64_t length = forecast->candidate;

    if (forecast->votes <= length / 2 || length > forecast->recent_capacity ||
        length > forecast->notes - forecast->first_note) {
        return;
    }
    for (uint64_t i = forecast->notes - length; i < forecast->notes; i++) {
        struct hvd_known *tensor = forecast->recent[i & (forecast->recent_capacity - 1)];

        if (tensor->guess != forecast->guess) {
            tensor->guess = forecast->guess;
            tensor->in_guess = 0;
        }
        tensor->in_guess++;
    }
    forecast->period = (size_t)length;
    begin_cycle(forecast);
}

/* Counts a tensor in the present cycle; false when that has it too often by the guess. */
static bool count_in_cycle(const struct hvd_forecast *forecast, struct hvd_known *tensor)
{
    if (tensor->cycle != forecast->cycle) {
        tensor->cycle = forecast->cycle;
        tensor->in_cycle = 0;
    }
    tensor->in_cycle++;
    return tensor->guess == forecast->guess && tensor->in_cycle <= tensor->in_guess;
}

static void append(struct hvd_forecast *forecast, struct hvd_known *const *tensors,
                   size_t count, const struct hvd_forecast_batch *batch)
{
    struct hvd_forecast_batch *added = &forecast->batches[forecast->batch_count++];

    *added = *batch;
    added->first = forecast->count;
    added->count = count;
    memcpy(forecast->tensors + forecast->count, tensors, count * sizeof(tensors[0]));
    forecast->count += count;
}

/* Drops all batches before number `keep`. */
static void drop_batches(struct hvd_forecast *forecast, size_t keep)
{
    size_t first =
        keep < forecast->batch_count ? forecast->batches[keep].first : forecast->count;

    forecast->count -= first;
    forecast->batch_count -= keep;
    memmove(forecast->tensors, forecast->tensors + first,
            forecast->count * sizeof(forecast->tensors[0]));
    memmove(forecast->batches, forecast->batches + keep,
            forecast->batch_count * sizeof(forecast->batches[0]));
    for (size_t i = 0; i < forecast->batch_count; i++) {
        forecast->batches[i].first -= first;
    }
}

static bool watch(struct hvd_forecast *forecast, struct hvd_known *const *tensors,
                  size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!count_in_cycle(forecast, tensors[i])) {
            return false;
        }
        if (++forecast->in_cycle == forecast->period) {
            forecast->repeats++;
            begin_cycle(forecast);
        }
    }
    return true;
}

int hvd_forecast_note(struct hvd_forecast *forecast, struct hvd_known *const *tensors,
                      size_t count, const struct hvd_forecast_batch *batch)
{
    if (reserve(forecast, count) != 0) {
        return HVD_ERR_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        if (note_recent(forecast, tensors[i]) != 0) {
            return HVD_ERR_NOMEM;
        }
    }
    if (forecast->period == 0) {
        guess(forecast);
        return 0;
    }
    append(forecast, tensors, count, batch);
    if (!watch(forecast, tensors, count)) {
        guess_again(forecast);
    } else if (forecast->count > 4 * forecast->period) {
        drop_batches(forecast, forecast->batch_count / 2);
    }
    return 0;
}

/* The first of the last batches that have `period` tensors together; -1 when none fits. */
static int64_t last_cycle(const struct hvd_forecast *forecast)
{
    for (size_t i = forecast->batch_count; i-- > 0;) {
        size_t tensors = forecast->count - forecast->batches[i].first;

        if (tensors >= forecast->period) {
            return tensors == forecast->period ? (int64_t)i : -1;
        }
    }
    return -1;
}

bool hvd_forecast_is_due(struct hvd_forecast *forecast)
{
    bool is_whole = true;
    int64_t first;

    if (forecast->period == 0 || forecast->repeats < forecast->needed) {
        return false;
    }
    first = last_cycle(forecast);
    if (first < 0) {
        return false;
    }
    forecast->cycle++; /* to count afresh */
    for (size_t i = forecast->batches[first].first; i < forecast->count; i++) {
        is_whole &= count_in_cycle(forecast, forecast->tensors[i]);
    }
    begin_cycle(forecast);
    if (is_whole) {
        drop_batches(forecast, (size_t)first);
    }
    return is_whole;
}

static bool fuses(const struct hvd_forecast *forecast, const struct hvd_forecast_batch *a,
                  const struct hvd_forecast_batch *b)
{
    const struct hvd_proposal *one = forecast->tensors[a->first]->proposal;
    const struct hvd_proposal *other = forecast->tensors[b->first]->proposal;

    return one->kind == HVD_KIND_ALLREDUCE && other->kind == one->kind &&
           one->dtype == other->dtype && one->wire == other->wire &&
           one->op == other->op && one->device == other->device &&
           one->is_shared == other->is_shared && one->prescale == other->prescale &&
           one->postscale == other->postscale;
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
