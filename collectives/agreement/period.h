/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the period of a job that repeats itself, from the batches that rank 0 decides on.
 * Pure.
 *
 * A cycle (a training step) is a sequence of batches of cached tensors. Its length is
 * guessed by majority vote: each tensor votes for the number of tensors since it last
 * came. The guessed cycle consists of the last tensors, as many as its length. The guess
 * is checked for some cycles: each must have these tensors, each as often, in any order.
 * After that, the next batches are predicted to be those of the last cycle. Batches are
 * merged if they came within one cycle time of each other and did not wait for each
 * other. New tensors do not count, because some names never come back. */
#ifndef HVD_PERIOD_H
#define HVD_PERIOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/request/batch.h"

struct hvd_cached_tensor;

struct hvd_repeated_batch {
    enum hvd_priority priority;
    int64_t bytes;
    int64_t decided_ns;
    bool overlaps; /* the previous batch was still running on this rank */
    size_t first; /* tensors[first] ... tensors[first + count - 1] */
    size_t count;
};

struct hvd_period {
    /* [count] tensors since the guess, without the oldest ones */
    struct hvd_cached_tensor **tensors;
    size_t count;
    size_t capacity;
    struct hvd_repeated_batch *batches; /* the batches of these tensors */
    size_t batch_count;
    size_t batch_capacity;
    uint64_t cycle; /* number of the present cycle */
    size_t in_cycle; /* tensors of the present cycle so far */
    /* [recent_capacity] ring of the tensors noted last */
    struct hvd_cached_tensor **recent;
    size_t recent_capacity; /* a power of two */
    uint64_t notes; /* tensors noted in all */
    uint64_t first_note; /* the first note that is still remembered */
    uint64_t candidate; /* the length that has the most votes so far */
    uint64_t votes; /* the votes for it, less those against it */
    size_t length; /* tensors of a cycle, as guessed; 0: not guessed yet */
    uint64_t guess; /* number of the present guess */
    int repeats; /* cycles in a row that matched the guess */
    int needed; /* repeats that a prediction requires */
    bool may_merge;
};

void hvd_period_init(struct hvd_period *period);
void hvd_period_finish(struct hvd_period *period);

/* Takes note of a batch that rank 0 has decided on; all its tensors must have been in the
 * cache before. Returns 0 or HVD_ERR_NOMEM. */
int hvd_period_note(struct hvd_period *period, struct hvd_cached_tensor *const *tensors,
                    size_t count, const struct hvd_repeated_batch *batch);

/* Whether the next batches can be predicted: the last batches are a whole cycle, and
 * enough cycles came before. If so, `batches` and `tensors` hold this cycle, and nothing
 * may be noted until restart. */
bool hvd_period_is_due(struct hvd_period *period);

/* Merges batches, after is_due has returned true. Adasum's batches are not merged,
 * because their tensors cost memory on every rank. threshold: most bytes of a merged
 * batch. */
void hvd_period_merge(struct hvd_period *period, int64_t threshold, int64_t cycle_ns);

/* Starts the search anew, because a tensor is evicted or a replay has begun. */
void hvd_period_restart(struct hvd_period *period);

/* The prediction was wrong: requires more repeats before the next one. */
void hvd_period_was_wrong(struct hvd_period *period);

#endif
