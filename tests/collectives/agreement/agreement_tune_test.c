/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 changes how tensors are fused while the job runs. */
#include <string.h>

#include "tests/collectives/agreement/agreement_program.h"
#include "tests/tap.h"

enum {
    MOST_RANKS = 8,
    TENSORS = 10,
    STEPS = 12,
};

static struct hvd_agreement_counts counts_of(const struct sim *sim)
{
    struct hvd_agreement_counts counts;

    hvd_agreement_count(sim->ranks[0].agreement, &counts);
    return counts;
}

static void run_steps(struct sim *sim, struct program *programs, int steps)
{
    for (int rank = 0; rank < sim->layout.size; rank++) {
        for (int step = 0; step < steps; step++) {
            for (int i = 0; i < TENSORS; i++) {
                program_submit(&programs[rank], 100 + i, "gradient.%d", i);
            }
            program_wait(&programs[rank]);
        }
    }
    programs_run(sim, programs);
}

static bool all_fuse_so(const struct sim *sim, int64_t threshold, int64_t cycle_ns)
{
    for (int rank = 0; rank < sim->layout.size; rank++) {
        const struct hvd_fusion *fusion =
            hvd_agreement_fusion(sim->ranks[rank].agreement);

        if (fusion->threshold != threshold || fusion->cycle_ns != cycle_ns) {
            return false;
        }
    }
    return true;
}

static int failures(const struct sim *sim, const struct program *programs)
{
    int count = 0;

    for (int rank = 0; rank < sim->layout.size; rank++) {
        count += programs[rank].failures;
    }
    return count;
}

/* A replay is in force; after the change, each tensor is a batch of its own. */
static void test_change(const int *nodes, unsigned seed)
{
    struct program programs[MOST_RANKS] = {0};
    struct hvd_agreement_counts before, after;
    struct sim sim;
    int status;

    sim_init(&sim, nodes, NULL, seed);
    run_steps(&sim, programs, STEPS);
    before = counts_of(&sim);
    status = sim_tune(&sim, 0, 3000000);
    run_steps(&sim, programs, STEPS);
    after = counts_of(&sim);
    tap_ok(status == 0 && all_fuse_so(&sim, 0, 3000000),
           "%d ranks: all fuse with the settings of rank 0", sim.layout.size);
    tap_ok(before.replays == 1 && after.replays == 2 && after.breaks == before.breaks + 1,
           "the previous replay ends, and a new one begins");
    before = after;
    run_steps(&sim, programs, STEPS);
    after = counts_of(&sim);
    tap_ok(after.replayed - before.replayed == STEPS * TENSORS &&
               after.decided == before.decided,
           "in the new replay, no tensors are fused");
    tap_ok(sim.fault[0] == '\0' && failures(&sim, programs) == 0,
           "every tensor succeeds: %s", sim.fault);
    programs_finish(programs, sim.layout.size);
    sim_finish(&sim);
}

/* The settings change so often that replays have only just begun and tensors are still in
 * flight. */
static void test_many_changes(const int *nodes, unsigned seed)
{
    struct program programs[MOST_RANKS] = {0};
    struct sim sim;
    bool good = true;

    sim_init(&sim, nodes, NULL, seed);
    for (int i = 0; i < 40 && good; i++) {
        const int64_t threshold = i % 3 * 1000, cycle_ns = i % 2 * 1000000;

        good = sim_tune(&sim, threshold, cycle_ns) == 0 &&
               sim_tune(&sim, threshold + 1, cycle_ns) == 0;
        run_steps(&sim, programs, i % 9);
        sim_settle(&sim);
        good &= all_fuse_so(&sim, threshold + 1, cycle_ns);
    }
    tap_ok(good && sim.fault[0] == '\0' && failures(&sim, programs) == 0,
           "forty changes in quick succession do no harm: %s", sim.fault);
    programs_finish(programs, sim.layout.size);
    sim_finish(&sim);
}

int main(void)
{
    static const int layouts[][4] = {{1, 0}, {4, 0}, {2, 2, 0}, {3, 1, 2, 0}};
    unsigned seed = tap_seed(1);

    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        for (unsigned round = 0; round < 5; round++) {
            test_change(layouts[i], seed + round);
            test_many_changes(layouts[i], seed + round);
        }
    }
    return tap_done();
}
