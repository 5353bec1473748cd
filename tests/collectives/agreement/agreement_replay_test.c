/* SPDX-License-Identifier: Apache-2.0 */
/* Tests when replays begin and end. */
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

/* A tensor that comes first, a few times in a row, and then after every 20 steps. */
static void rare_tensor(struct program *programs, int size, unsigned seed)
{
    (void)seed;
    for (int r = 0; r < size; r++) {
        for (int i = 0; i < 6; i++) {
            program_submit(&programs[r], 1, "metric");
            program_wait(&programs[r]);
        }
        for (int step = 1; step <= 300; step++) {
            try_step(&programs[r], 2, false);
            if (step % 20 == 0) {
                program_submit(&programs[r], 1, "metric");
                program_wait(&programs[r]);
            }
        }
    }
}

/* Epochs of 40 steps. After each, all ranks wait for one tensor of a step before they
 * submit the others. */
static void epochs(struct program *programs, int size, unsigned seed)
{
    (void)seed;
    for (int r = 0; r < size; r++) {
        for (int epoch = 0; epoch < 14; epoch++) {
            for (int step = 0; step < 40; step++) {
                try_step(&programs[r], 3, false);
            }
            program_submit(&programs[r], 100, "gradient.0");
            program_wait(&programs[r]);
        }
    }
}

/* Submits tensors of a GPU, which no replay may contain. */
static void submit_fixed(struct program *program, int count)
{
    for (int i = 0; i < count; i++) {
        char name[32];
        struct hvd_descriptor tensor;

        snprintf(name, sizeof(name), "gpu.%d", i);
        tensor = sim_allreduce(name, 100);
        tensor.device = 0;
        program_propose(program, &tensor, NULL);
    }
}

/* Steps of two tensors beside many that no replay may contain. */
static void mostly_fixed(struct program *programs, int size, unsigned seed)
{
    (void)seed;
    for (int r = 0; r < size; r++) {
        for (int step = 0; step < 100; step++) {
            submit_fixed(&programs[r], 100);
            try_step(&programs[r], 2, false);
        }
    }
}

/* A tensor is repeated, and again after thousands of tensors that no replay may
 * contain. */
static void long_pause(struct program *programs, int size, unsigned seed)
{
    (void)seed;
    for (int r = 0; r < size; r++) {
        for (int step = 0; step < 60; step++) {
            if (step < 10 || step >= 50) {
                program_submit(&programs[r], 1, "metric");
            } else {
                submit_fixed(&programs[r], 120);
            }
            program_wait(&programs[r]);
        }
    }
}

/* Runs a scenario, and counts the batches and the replays. */
static bool count_replays(const int *nodes, scenario *write, unsigned seed,
                          struct hvd_agreement_counts *counts)
{
    struct program programs[TRY_MOST_RANKS] = {0};
    struct sim sim;
    bool good;

    sim_init(&sim, nodes, NULL, seed);
    write(programs, sim.layout.size, seed);
    good = programs_run(&sim, programs);
    *counts = try_counts(&sim, 0);
    tap_note("%lu batches replayed, %lu agreed upon, in %lu replays",
             (unsigned long)counts->replayed, (unsigned long)counts->decided,
             (unsigned long)counts->replays);
    sim_finish(&sim);
    programs_finish(programs, TRY_MOST_RANKS);
    return good;
}

/* Runs a scenario. Returns whether more batches were replayed than agreed
 * upon. */
static bool replays_most(const int *nodes, scenario *write, unsigned seed)
{
    struct hvd_agreement_counts counts;

    return count_replays(nodes, write, seed, &counts) && counts.replayed > counts.decided;
}

int main(void)
{
    static const int one_node[] = {2, 0}, two_nodes[] = {1, 1, 0};
    unsigned seed = tap_seed(6);
    struct hvd_agreement_counts counts;

    hvd_log_least(HVD_LOG_ERROR);
    try_scenario("a group is described anew when its replay begins", group_meets_replay,
                 NULL, seed);
    tap_ok(replays_most(one_node, rare_tensor, seed) &&
               replays_most(two_nodes, rare_tensor, seed),
           "a replay of a tensor that has become rare does not keep steps from being "
           "replayed");
    tap_ok(replays_most(one_node, epochs, seed) && replays_most(two_nodes, epochs, seed),
           "steps are replayed again after each of many epochs");
    tap_ok(count_replays(one_node, mostly_fixed, seed, &counts) && counts.replays == 1 &&
               counts.replayed > 90,
           "tensors that no replay may contain do not end a replay");
    tap_ok(count_replays(one_node, long_pause, seed, &counts) && counts.replays == 2,
           "unless there are thousands while the replay stands still");
    return tap_done();
}
