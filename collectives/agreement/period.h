/* SPDX-License-Identifier: Apache-2.0 */
/* Has the job begun to repeat itself? Rank 0 watches its own answers. Pure.
 *
 * A cycle (a training step) is a row of batches of cached tensors. Its length is guessed by
 * majority: after how many others does a tensor come back? Its tensors are then the last ones
 * of that number. Whether that is true is watched for some cycles: each must have these tensors, each
 * as often, in whatever order. Then the next ones can be foretold: the batches of the last
 * cycle, those put together that came within one cycle time of each other and did not wait
 * for each other. Tensors that are new do not count: some names never come back. */
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
    bool overlaps; /* the one before was still running here */
    size_t first; /* tensors[first] ... tensors[first + count - 1] */
    size_t count;
};

struct hvd_period {
    struct hvd_cached_tensor *
        *tensors; /* [count], since the guess; old ones are dropped */
    size_t count;
    size_t capacity;
    struct hvd_repeated_batch *batches; /* of these tensors */
    size_t batch_count;
    size_t batch_capacity;
    uint64_t cycle; /* number of the present one */
    size_t in_cycle; /* tensors of it so far */
    struct hvd_cached_tensor **recent; /* [recent_capacity] ring of what was noted last */
    size_t recent_capacity; /* a power of two */
    uint64_t notes; /* tensors noted in all */
    uint64_t first_note; /* those from here on are remembered */
    uint64_t candidate; /* the length that a cycle seems to have */
    uint64_t votes; /* by how many tensors more than against it */
    size_t length; /* tensors of a cycle, as guessed; 0: still guessing */
    uint64_t guess; /* numbers the guesses */
    int repeats; /* cycles in a row that were as guessed */
    int needed; /* repeats before it is foretold */
    bool may_merge;
};

void hvd_period_init(struct hvd_period *period);
void hvd_period_finish(struct hvd_period *period);

/* Takes note of a batch that has been decided; all its tensors were in the cache before. Returns 0 or
 * HVD_ERR_NOMEM. */
int hvd_period_note(struct hvd_period *period, struct hvd_cached_tensor *const *tensors,
                    size_t count, const struct hvd_repeated_batch *batch);

/* Whether what comes next can be foretold: the last batches are a whole cycle, and enough were
 * before. Then batches and tensors are those of that cycle, and nothing may be noted until
 * restart. */
bool hvd_period_is_due(struct hvd_period *period);

/* Puts batches together, after is_due, but none of Adasum, whose tensors cost memory on every rank.
 * threshold: bytes. */
void hvd_period_merge(struct hvd_period *period, int64_t threshold, int64_t cycle_ns);

/* Starts over: a tensor is evicted, or a replay has begun. */
void hvd_period_restart(struct hvd_period *period);

/* The period was wrong: be slower to make the next one. */
void hvd_period_was_wrong(struct hvd_period *period);

#endif
