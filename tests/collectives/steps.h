/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a training job that repeat until they are replayed, for tests of what happens
 * then. */
#ifndef HVD_TEST_STEPS_H
#define HVD_TEST_STEPS_H

#include <stdbool.h>

#include "collectives/hvd.h"

enum {
    STEP_TENSORS = 8,
    STEP_ELEMENTS = 1000,
};

/* Starts a tensor of a step; in flight once at a time. Ends the process where that fails,
 * unless err is given: then returns NULL. */
struct hvd_request *step_start(int tensor, struct hvd_error *err);

/* Whether this tensor's last sum over all ranks was right. */
bool step_is_right(int tensor);

/* Plays some steps; enough of them are replayed. Returns the first failure, or 0; *good
 * is set to false when a sum is wrong. */
int steps_try(int count, bool *good, struct hvd_error *err);

/* The same where all must go well; returns whether all sums were right. */
bool steps_play(int count);

#endif
