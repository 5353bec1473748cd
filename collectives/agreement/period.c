/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the period of a job that repeats itself. */
#include "collectives/agreement/period.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/fusion.h"
#include "collectives/agreement/response_cache.h"

static const int first_needed = 2;
static const int most_needed = 1024;

static const size_t first_recent = 256;

/* The most tensors that a cycle may have. */
static const size_t most_recent = 131072;

void hvd_period_init(struct hvd_period *period)
{
    *period = (struct hvd_period){
        .cycle = 1,
        .guess = 1,
        .needed = first_needed,
        .may_merge = true,
    };
}

void hvd_period_finish(struct hvd_period *period)
{
    free(period->tensors);
    free(period->batches);
    free(period->recent);
    *period = (struct hvd_period){0};
}

static void begin_cycle(struct hvd_period *period)
{
    period->cycle++;
    period->in_cycle = 0;
}

static void guess_again(struct hvd_period *period)
{
    period->length = 0;
    period->guess++;
    period->repeats = 0;
    period->count = 0;
    period->batch_count = 0;
    begin_cycle(period);
}

void hvd_period_restart(struct hvd_period *period)
{
    guess_again(period);
    period->first_note = period->notes; /* older tensors may have been freed */
    period->votes = 0;
}

void hvd_period_was_wrong(struct hvd_period *period)
{
    hvd_period_restart(period);
    period->may_merge = false;
    if (period->needed < most_needed) {
        period->needed *= 2;
    }
}

static int reserve_tensors(struct hvd_period *period, size_t count)
{
    if (period->count + count > period->capacity) {
        size_t capacity = 2 * (period->count + count);
        struct hvd_cached_tensor **tensors =
            realloc(period->tensors, capacity * sizeof(tensors[0]));

        if (tensors == NULL) {
            return HVD_ERR_NOMEM;
        }
        period->tensors = tensors;
        period->capacity = capacity;
    }
    if (period->batch_count == period->batch_capacity) {
        size_t capacity = 2 * period->batch_capacity + 16;
        struct hvd_repeated_batch *batches =
            realloc(period->batches, capacity * sizeof(batches[0]));

        if (batches == NULL) {
            return HVD_ERR_NOMEM;
        }
        period->batches = batches;
        period->batch_capacity = capacity;
    }
    return 0;
}

/* Doubles the ring when it is full, up to the length of the longest cycle. */
static int reserve_recent(struct hvd_period *period)
{
    size_t capacity =
        period->recent_capacity > 0 ? 2 * period->recent_capacity : first_recent;
    struct hvd_cached_tensor **recent;

    if (period->notes - period->first_note < period->recent_capacity ||
        period->recent_capacity >= most_recent) {
        return 0;
    }
    recent = calloc(capacity, sizeof(recent[0]));
    if (recent == NULL) {
        return HVD_ERR_NOMEM;
    }
    for (uint64_t i = period->first_note; i < period->notes; i++) {
        recent[i & (capacity - 1)] = period->recent[i & (period->recent_capacity - 1)];
    }
    free(period->recent);
    period->recent = recent;
    period->recent_capacity = capacity;
    return 0;
}

/* Votes for a length (Boyer-Moore): if more than half of the votes are for one length, it
 * ends up as the candidate. */
static void vote_for_gap(struct hvd_period *period, uint64_t gap)
{
    if (gap == period->candidate) {
        period->votes++;
    } else if (period->votes == 0) {
        period->candidate = gap;
        period->votes = 1;
    } else {
        period->votes--;
    }
}

static int note_recent(struct hvd_period *period, struct hvd_cached_tensor *tensor)
{
    if (reserve_recent(period) != 0) {
        return HVD_ERR_NOMEM;
    }
    if (tensor->noted_at > period->first_note) {
        vote_for_gap(period, period->notes + 1 - tensor->noted_at);
    }
    period->recent[period->notes & (period->recent_capacity - 1)] = tensor;
    tensor->noted_at = ++period->notes;
    return 0;
}

/* Guesses that the last `candidate` tensors are a cycle, once this length has enough
 * votes. */
static void guess_cycle(struct hvd_period *period)
{
    uint64_t length = period->candidate;

    if (period->votes <= length / 2 || length > period->recent_capacity ||
        length > period->notes - period->first_note) {
        return;
    }
    for (uint64_t i = period->notes - length; i < period->notes; i++) {
        struct hvd_cached_tensor *tensor =
            period->recent[i & (period->recent_capacity - 1)];

        if (tensor->guess != period->guess) {
            tensor->guess = period->guess;
            tensor->in_guess = 0;
        }
        tensor->in_guess++;
    }
    period->length = (size_t)length;
    begin_cycle(period);
}

/* Counts a tensor in the present cycle; returns false if it came more often than the
 * guess says. */
static bool count_in_cycle(const struct hvd_period *period,
                           struct hvd_cached_tensor *tensor)
{
    if (tensor->cycle != period->cycle) {
        tensor->cycle = period->cycle;
        tensor->in_cycle = 0;
    }
    tensor->in_cycle++;
    return tensor->guess == period->guess && tensor->in_cycle <= tensor->in_guess;
}

static void append_batch(struct hvd_period *period,
                         struct hvd_cached_tensor *const *tensors, size_t count,
                         const struct hvd_repeated_batch *batch)
{
    struct hvd_repeated_batch *added = &period->batches[period->batch_count++];

    *added = *batch;
    added->first = period->count;
    added->count = count;
    memcpy(period->tensors + period->count, tensors, count * sizeof(tensors[0]));
    period->count += count;
}

/* Drops all batches before number `keep`. */
static void drop_batches(struct hvd_period *period, size_t keep)
{
    size_t first =
        keep < period->batch_count ? period->batches[keep].first : period->count;

    period->count -= first;
    period->batch_count -= keep;
    memmove(period->tensors, period->tensors + first,
            period->count * sizeof(period->tensors[0]));
    memmove(period->batches, period->batches + keep,
            period->batch_count * sizeof(period->batches[0]));
    for (size_t i = 0; i < period->batch_count; i++) {
        period->batches[i].first -= first;
    }
}

static bool watch_cycle(struct hvd_period *period,
                        struct hvd_cached_tensor *const *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!count_in_cycle(period, tensors[i])) {
            return false;
        }
        if (++period->in_cycle == period->length) {
            period->repeats++;
            begin_cycle(period);
        }
    }
    return true;
}

int hvd_period_note(struct hvd_period *period, struct hvd_cached_tensor *const *tensors,
                    size_t count, const struct hvd_repeated_batch *batch)
{
    if (reserve_tensors(period, count) != 0) {
        return HVD_ERR_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        if (note_recent(period, tensors[i]) != 0) {
            return HVD_ERR_NOMEM;
        }
    }
    if (period->length == 0) {
        guess_cycle(period);
        return 0;
    }
    append_batch(period, tensors, count, batch);
    if (!watch_cycle(period, tensors, count)) {
        guess_again(period);
    } else if (period->count > 4 * period->length) {
        drop_batches(period, period->batch_count / 2);
    }
    return 0;
}

/* Returns the index of the batch from which the rest contains exactly one cycle of
 * tensors, or -1 if no batch starts there. */
static int64_t last_cycle(const struct hvd_period *period)
{
    for (size_t i = period->batch_count; i-- > 0;) {
        size_t tensors = period->count - period->batches[i].first;

        if (tensors >= period->length) {
            return tensors == period->length ? (int64_t)i : -1;
        }
    }
    return -1;
}

bool hvd_period_is_due(struct hvd_period *period)
{
    bool is_whole = true;
    int64_t first;

    if (period->length == 0 || period->repeats < period->needed) {
        return false;
    }
    first = last_cycle(period);
    if (first < 0) {
        return false;
    }
    period->cycle++; /* so that count_in_cycle counts from 0 */
    for (size_t i = period->batches[first].first; i < period->count; i++) {
        is_whole &= count_in_cycle(period, period->tensors[i]);
    }
    begin_cycle(period);
    if (is_whole) {
        drop_batches(period, (size_t)first);
    }
    return is_whole;
}

static bool fuses_batches(const struct hvd_period *period,
                          const struct hvd_repeated_batch *a,
                          const struct hvd_repeated_batch *b)
{
    const struct hvd_descriptor *one = period->tensors[a->first]->descriptor;
    const struct hvd_descriptor *other = period->tensors[b->first]->descriptor;

    return one->kind == HVD_KIND_ALLREDUCE && other->kind == one->kind &&
           one->dtype == other->dtype && one->wire == other->wire &&
           one->op == other->op && one->device == other->device &&
           one->prescale == other->prescale && one->postscale == other->postscale;
}

void hvd_period_merge(struct hvd_period *period, int64_t threshold, int64_t cycle_ns)
{
    size_t kept = 0;

    for (size_t i = 1; period->may_merge && i < period->batch_count; i++) {
        struct hvd_repeated_batch *last = &period->batches[kept];
        struct hvd_repeated_batch *next = &period->batches[i];

        if (next->overlaps && last->priority == HVD_PRIORITY_QUICK &&
            next->priority == HVD_PRIORITY_QUICK &&
            next->decided_ns - last->decided_ns <= cycle_ns &&
            last->bytes + next->bytes <= threshold && fuses_batches(period, last, next)) {
            last->bytes += next->bytes;
            last->count += next->count;
        } else {
            period->batches[++kept] = *next;
        }
    }
    if (period->may_merge && period->batch_count > 0) {
        period->batch_count = kept + 1;
    }
    for (size_t i = 0; i < period->batch_count; i++) {
        if (period->batches[i].bytes >= HVD_BULK_BYTES) {
            period->batches[i].priority = HVD_PRIORITY_BULK;
        }
    }
}
