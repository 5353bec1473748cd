/* SPDX-License-Identifier: Apache-2.0 */
/* Tests a replay whose tensors change just when it begins. */
#include <stdio.h>
#include <string.h>

#include "gpu_binding/base/log.h"
#include "tests/collectives/agreement/agreement_try.h"

/* All ranks give tensor a of a group another shape just when a replay with the group
 * begins. One rank also changes tensor b, which fails, so that tensor a must wait. */
static void group_meets_replay(struct program *programs, int size, unsigned seed)
{
    static const struct ending differs = {.text = "Mismatched ALLREDUCE tensor shapes"};

    for (int r = 0; r < size; r++) {
        int changed = 3 + (int)(seed % 4);

        for (int step = 0; step < 12; step++) {
            struct hvd_descriptor a = sim_allreduce("a", step < changed ? 10 : 20);
            struct hvd_descriptor b = sim_allreduce("b", 30);
            const struct hvd_descriptor *group[] = {&a, &b};
            bool is_odd = step == changed && size > 1;

            b.shape[0] += is_odd && r == 0 ? 1 : 0;
            program_wait_for(&programs[r], "a");
            program_propose_group(&programs[r], group, 2, is_odd ? &differs : NULL);
            for (int i = 0; i < 3; i++) {
                char name[16];

                snprintf(name, sizeof(name), "t%d", i);
                program_wait_for(&programs[r], name);
                program_submit(&programs[r], 10, "%s", name);
            }
        }
        program_wait(&programs[r]);
    }
}

int main(void)
{
    unsigned seed = tap_seed(6);

    hvd_log_least(HVD_LOG_ERROR);
    try_scenario("a group is described anew when its replay begins", group_meets_replay,
                 NULL, seed);
    return tap_done();
}
