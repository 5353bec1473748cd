/* SPDX-License-Identifier: Apache-2.0 */
/* Has the job begun to repeat itself? */
#include "collectives/agreement/repetition.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/fusion.h"
#include "collectives/agreement/tensor_cache.h"

static const int first_needed = 2;
static const int most_needed = 1024;

static const size_t first_recent = 256;

/* A cycle with more tensors is not foretold. */
static const size_t most_recent = 131072;

void hvd_repetition_init(struct hvd_repetition *repetition)
{
    *repetition = (struct hvd_repetition){
        .cycle = 1,
        .guess = 1,
        .needed = first_needed,
        .may_merge = true,
    };
}

void hvd_repetition_finish(struct hvd_repetition *repetition)
{
    free(repetition->tensors);
    free(repetition->batches);
    free(repetition->recent);
    *repetition = (struct hvd_repetition){0};
}

static void begin_cycle(struct hvd_repetition *repetition)
{
    repetition->cycle++;
    repetition->in_cycle = 0;
}

static void guess_again(struct hvd_repetition *repetition)
{
    repetition->period = 0;
    repetition->guess++;
    repetition->repeats = 0;
    repetition->count = 0;
    repetition->batch_count = 0;
    begin_cycle(repetition);
}

void hvd_repetition_restart(struct hvd_repetition *repetition)
{
    guess_again(repetition);
    repetition->first_note = repetition->notes; /* older ones may be gone */
    repetition->votes = 0;
}

void hvd_repetition_was_wrong(struct hvd_repetition *repetition)
{
    hvd_repetition_restart(repetition);
    repetition->may_merge = false;
    if (repetition->needed < most_needed) {
        repetition->needed *= 2;
    }
}

static int reserve(struct hvd_repetition *repetition, size_t count)
{
    if (repetition->count + count > repetition->capacity) {
        size_t capacity = 2 * (repetition->count + count);
        struct hvd_cached_tensor **tensors =
            realloc(repetition->tensors, capacity * sizeof(tensors[0]));

        if (tensors == NULL) {
            return HVD_ERR_NOMEM;
        }
        repetition->tensors = tensors;
        repetition->capacity = capacity;
    }
    if (repetition->batch_count == repetition->batch_capacity) {
        size_t capacity = 2 * repetition->batch_capacity + 16;
        struct hvd_repeated_batch *batches =
            realloc(repetition->batches, capacity * sizeof(batches[0]));

        if (batches == NULL) {
            return HVD_ERR_NOMEM;
        }
        repetition->batches = batches;
        repetition->batch_capacity = capacity;
    }
    return 0;
}

/* A ring twice as large, while there is more to remember and it is not longer than any model. */
static int reserve_recent(struct hvd_repetition *repetition)
{
    size_t capacity =
        repetition->recent_capacity > 0 ? 2 * repetition->recent_capacity : first_recent;
    struct hvd_cached_tensor **recent;

    if (repetition->notes - repetition->first_note < repetition->recent_capacity ||
        repetition->recent_capacity >= most_recent) {
        return 0;
    }
    recent = calloc(capacity, sizeof(recent[0]));
    if (recent == NULL) {
        return HVD_ERR_NOMEM;
    }
    for (uint64_t i = repetition->first_note; i < repetition->notes; i++) {
        recent[i & (capacity - 1)] =
            repetition->recent[i & (repetition->recent_capacity - 1)];
    }
    free(repetition->recent);
    repetition->recent = recent;
    repetition->recent_capacity = capacity;
    return 0;
}

/* Majority vote: in the end the candidate is what more than half of the tensors said. */
static void vote(struct hvd_repetition *repetition, uint64_t gap)
{
    if (gap == repetition->candidate) {
        repetition->votes++;
    } else if (repetition->votes == 0) {
        repetition->candidate = gap;
        repetition->votes = 1;
    } else {
        repetition->votes--;
    }
}

static int note_recent(struct hvd_repetition *repetition,
                       struct hvd_cached_tensor *tensor)
{
    if (reserve_recent(repetition) != 0) {
        return HVD_ERR_NOMEM;
    }
    if (tensor->noted_at > repetition->first_note) {
        vote(repetition, repetition->notes + 1 - tensor->noted_at);
    }
    repetition->recent[repetition->notes & (repetition->recent_capacity - 1)] = tensor;
    tensor->noted_at = ++repetition->notes;
    return 0;
}

/* Guesses that a cycle is the last `candidate` tensors, when enough of them say so. */
static void guess(struct hvd_repetition *repetition)
{
    uint64_t length = repetition->candidate;

    if (repetition->votes <= length / 2 || length > repetition->recent_capacity ||
        length > repetition->notes - repetition->first_note) {
        return;
    }
    for (uint64_t i = repetition->notes - length; i < repetition->notes; i++) {
        struct hvd_cached_tensor *tensor =
            repetition->recent[i & (repetition->recent_capacity - 1)];

        if (tensor->guess != repetition->guess) {
            tensor->guess = repetition->guess;
            tensor->in_guess = 0;
        }
        tensor->in_guess++;
    }
    repetition->period = (size_t)length;
    begin_cycle(repetition);
}

/* Counts a tensor in the present cycle; false when that has it too often by the guess. */
static bool count_in_cycle(const struct hvd_repetition *repetition,
                           struct hvd_cached_tensor *tensor)
{
    if (tensor->cycle != repetition->cycle) {
        tensor->cycle = repetition->cycle;
        tensor->in_cycle = 0;
    }
    tensor->in_cycle++;
    return tensor->guess == repetition->guess && tensor->in_cycle <= tensor->in_guess;
}

static void append(struct hvd_repetition *repetition,
                   struct hvd_cached_tensor *const *tensors, size_t count,
                   const struct hvd_repeated_batch *batch)
{
    struct hvd_repeated_batch *added = &repetition->batches[repetition->batch_count++];

    *added = *batch;
    added->first = repetition->count;
    added->count = count;
    memcpy(repetition->tensors + repetition->count, tensors, count * sizeof(tensors[0]));
    repetition->count += count;
}

/* Drops all batches before number `keep`. */
static void drop_batches(struct hvd_repetition *repetition, size_t keep)
{
    size_t first = keep < repetition->batch_count ? repetition->batches[keep].first
                                                  : repetition->count;

    repetition->count -= first;
    repetition->batch_count -= keep;
    memmove(repetition->tensors, repetition->tensors + first,
            repetition->count * sizeof(repetition->tensors[0]));
    memmove(repetition->batches, repetition->batches + keep,
            repetition->batch_count * sizeof(repetition->batches[0]));
    for (size_t i = 0; i < repetition->batch_count; i++) {
        repetition->batches[i].first -= first;
    }
}

static bool watch(struct hvd_repetition *repetition,
                  struct hvd_cached_tensor *const *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!count_in_cycle(repetition, tensors[i])) {
            return false;
        }
        if (++repetition->in_cycle == repetition->period) {
            repetition->repeats++;
            begin_cycle(repetition);
        }
    }
    return true;
}

int hvd_repetition_note(struct hvd_repetition *repetition,
                        struct hvd_cached_tensor *const *tensors, size_t count,
                        const struct hvd_repeated_batch *batch)
{
    if (reserve(repetition, count) != 0) {
        return HVD_ERR_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        if (note_recent(repetition, tensors[i]) != 0) {
            return HVD_ERR_NOMEM;
        }
    }
    if (repetition->period == 0) {
        guess(repetition);
        return 0;
    }
    append(repetition, tensors, count, batch);
    if (!watch(repetition, tensors, count)) {
        guess_again(repetition);
    } else if (repetition->count > 4 * repetition->period) {
        drop_batches(repetition, repetition->batch_count / 2);
    }
    return 0;
}

/* The first of the last batches that have `period` tensors together; -1 when none fits. */
static int64_t last_cycle(const struct hvd_repetition *repetition)
{
    for (size_t i = repetition->batch_count; i-- > 0;) {
        size_t tensors = repetition->count - repetition->batches[i].first;

        if (tensors >= repetition->period) {
            return tensors == repetition->period ? (int64_t)i : -1;
        }
    }
    return -1;
}

bool hvd_repetition_is_due(struct hvd_repetition *repetition)
{
    bool is_whole = true;
    int64_t first;

    if (repetition->period == 0 || repetition->repeats < repetition->needed) {
        return false;
    }
    first = last_cycle(repetition);
    if (first < 0) {
        return false;
    }
    repetition->cycle++; /* to count afresh */
    for (size_t i = repetition->batches[first].first; i < repetition->count; i++) {
        is_whole &= count_in_cycle(repetition, repetition->tensors[i]);
    }
    begin_cycle(repetition);
    if (is_whole) {
        drop_batches(repetition, (size_t)first);
    }
    return is_whole;
}

static bool fuses(const struct hvd_repetition *repetition,
                  const struct hvd_repeated_batch *a, const struct hvd_repeated_batch *b)
{
    const struct hvd_descriptor *one = repetition->tensors[a->first]->descriptor;
    const struct hvd_descriptor *other = repetition->tensors[b->first]->descriptor;

    return one->kind == HVD_KIND_ALLREDUCE && other->kind == one->kind &&
           one->dtype == other->dtype && one->wire == other->wire &&
           one->op == other->op && one->device == other->device &&
           one->prescale == other->prescale && one->postscale == other->postscale;
}

void hvd_repetition_merge(struct hvd_repetition *repetition, int64_t threshold,
                          int64_t cycle_ns)
{
    size_t kept = 0;

    for (size_t i = 1; repetition->may_merge && i < repetition->batch_count; i++) {
        struct hvd_repeated_batch *last = &repetition->batches[kept];
        struct hvd_repeated_batch *next = &repetition->batches[i];

        if (next->overlaps && last->priority == HVD_PRIORITY_QUICK &&
            next->priority == HVD_PRIORITY_QUICK &&
            next->decided_ns - last->decided_ns <= cycle_ns &&
            last->bytes + next->bytes <= threshold && fuses(repetition, last, next)) {
            last->bytes += next->bytes;
            last->count += next->count;
        } else {
            repetition->batches[++kept] = *next;
        }
    }
    if (repetition->may_merge && repetition->batch_count > 0) {
        repetition->batch_count = kept + 1;
    }
    for (size_t i = 0; i < repetition->batch_count; i++) {
        if (repetition->batches[i].bytes >= HVD_BULK_BYTES) {
            repetition->batches[i].priority = HVD_PRIORITY_BULK;
        }
    }
}
