/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a training job that repeat until they are replayed, for tests of replays. */
#ifndef HVD_TEST_STEPS_H
#define HVD_TEST_STEPS_H

#include <stdbool.h>

#include "collectives/hvd.h"

enum {
    STEP_TENSORS = 8,
    STEP_ELEMENTS = 1000,
};

/* Starts a tensor of a step, which may be in flight only once. If that fails, returns
 * NULL with the reason in err, or ends the process if err is NULL. */
struct hvd_request *step_start(int tensor, struct hvd_error *err);

/* Whether the last sum of a tensor over all ranks was right. */
bool step_is_right(int tensor);

/* Runs some steps; if there are enough of them, they are replayed. Returns the first
 * failure, or 0. Sets *good to false if a sum is wrong. */
int steps_try(int count, bool *good, struct hvd_error *err);

/* Runs steps that must succeed; returns whether all sums were right. */
bool steps_play(int count);

#endif
