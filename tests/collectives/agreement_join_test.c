/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that join, while tensors, plans, groups and process sets are under way. */
#include <stdio.h>
#include <string.h>

#include "gpu_binding/log.h"
#include "tests/collectives/agreement_try.h"

/* A rank joins without waiting for its last tensors, while others submit those names again. */
static void does_not_wait(struct program *programs, int size, unsigned seed)
{
    for (int r = 0; r < size; r++) {
        for (int epoch = 0; epoch < 5; epoch++) {
            int steps = 1 + (int)((seed + (unsigned)(r + epoch)) % 3);

            for (int i = 0; i < steps; i++) {
                program_wait(&programs[r]);
                program_submit(&programs[r], 10, "a");
                program_submit(&programs[r], 10, "b");
            }
            program_join(&programs[r]);
        }
    }
}

/* A rank ends the job as soon as its join has ended, while others still run what they submitted
 * before. Joins end well, or are shut down, but the same on all ranks. */
static void leaves_after_join(struct program *programs, int size, unsigned seed)
{
    does_not_wait(programs, size, seed);
    for (int r = 0; r < size; r++) {
        program_leave(&programs[r]);
    }
}

int main(void)
{
    unsigned seed = tap_seed(20250308);

    hvd_log_least(HVD_LOG_ERROR);
    try_scenario("ranks join without waiting for what they have submitted", does_not_wait,
                 NULL, seed);
    try_scenario("a rank leaves while others end their join", leaves_after_join, NULL,
                 seed);
    return tap_done();
}
