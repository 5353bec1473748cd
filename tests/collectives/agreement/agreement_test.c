/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the agreement of all ranks in a simulated job whose messages arrive in random
 * order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/log.h"
#include "tests/collectives/agreement/agreement_try.h"
#include "tests/tap.h"

static void steady(struct program *programs, int size, unsigned seed)
{
    (void)seed;
    for (int r = 0; r < size; r++) {
        for (int step = 0; step < 30; step++) {
            try_step(&programs[r], 12, false);
        }
    }
}

static void alternating(struct program *programs, int size, unsigned seed)
{
    (void)seed;
    for (int r = 0; r < size; r++) {
        for (int step = 0; step < 30; step++) {
            try_step(&programs[r], 12, step % 2 == 1);
        }
    }
}

/* Half of the ranks submit the tensors of a step in one order, the others in the opposite
 * one. Every ten steps, the halves swap their orders. */
static void opposed(struct program *programs, int size, unsigned seed)
{
    for (int r = 0; r < size; r++) {
        for (int step = 0; step < 30; step++) {
            try_step(&programs[r], 8, (r + step / 10 + (int)seed) % 2 == 1);
        }
    }
}

static void one_by_one(struct program *programs, int size, unsigned seed)
{
    (void)seed;
    for (int r = 0; r < size; r++) {
        for (int step = 0; step < 20; step++) {
            for (int i = 0; i < 5; i++) {
                program_submit(&programs[r], 10 + i, "metric.%d", i);
                program_wait(&programs[r]);
            }
        }
    }
}

/* One rank waits for the first tensor while the others have submitted more. */
static void waits_differently(struct program *programs, int size, unsigned seed)
{
    for (int r = 0; r < size; r++) {
        for (int step = 0; step < 30; step++) {
            bool is_odd = step > 12 && r == (int)(seed % (unsigned)size);

            program_submit(&programs[r], 10, is_odd ? "b" : "a");
            if (is_odd) {
                program_wait(&programs[r]);
            }
            program_submit(&programs[r], 10, is_odd ? "a" : "b");
            program_submit(&programs[r], 3 << 20, "large");
            program_wait(&programs[r]);
        }
    }
}

/* A tensor of one name is submitted several times in a step. */
static void names_come_back(struct program *programs, int size, unsigned seed)
{
    for (int r = 0; r < size; r++) {
        for (int step = 0; step < 25; step++) {
            for (int i = 0; i < (int)(seed % 3); i++) {
                program_submit(&programs[r], 1, "loss");
                program_wait(&programs[r]);
            }
            try_step(&programs[r], 6, false);
            for (int i = 0; i < 2; i++) {
                program_submit(&programs[r], 1, "loss");
                program_wait(&programs[r]);
            }
        }
    }
}

static void extra_tensors(struct program *programs, int size, unsigned seed)
{
    for (int r = 0; r < size; r++) {
        for (int step = 0; step < 40; step++) {
            if (step % 7 == 3) {
                program_submit(&programs[r], 5, "evaluation.%d", step % 2);
            }
            if (step % 5 == (int)(seed % 5)) {
                program_submit(&programs[r], 5, "once.%d", step);
            }
            try_step(&programs[r], 6, false);
        }
    }
}

/* All ranks change the shape of the tensors in the middle of a replay. */
static void new_shapes(struct program *programs, int size, unsigned seed)
{
    (void)seed;
    for (int r = 0; r < size; r++) {
        for (int step = 0; step < 40; step++) {
            for (int i = 0; i < 4; i++) {
                program_submit(&programs[r], 10 + step / 12, "t%d", i);
            }
            program_wait(&programs[r]);
        }
    }
}

static void uneven(struct program *programs, int size, unsigned seed)
{
    for (int r = 0; r < size; r++) {
        for (int epoch = 0; epoch < 4; epoch++) {
            int steps = 8 + (int)((seed + (unsigned)(r * 5 + epoch)) % 7);

            for (int step = 0; step < steps; step++) {
                try_step(&programs[r], 5, false);
            }
            program_join(&programs[r]);
        }
    }
}

static void test_scenarios(unsigned seed)
{
    struct hvd_agreement_settings tiny = sim_settings(), none = sim_settings();
    struct hvd_agreement_settings no_replay = sim_settings(), no_fusion = sim_settings();
    struct hvd_agreement_settings few = sim_settings();

    tiny.fusion.capacity = 5;
    few.fusion.capacity = 2;
    none.fusion.capacity = 0;
    no_replay.may_replay = false;
    no_fusion.fusion.threshold = 0;
    no_fusion.fusion.cycle_ns = 0;
    try_replayed("steps that repeat are replayed", steady, NULL, seed);
    try_scenario("without replays, rank 0 decides on each step", steady, &no_replay,
                 seed);
    try_replayed("steps are replayed without fusion", steady, &no_fusion, seed);
    try_scenario("there are more tensors than the cache holds", steady, &tiny, seed);
    try_scenario("steps run without a cache", steady, &none, seed);
    try_scenario("tensors come in two orders that alternate", alternating, NULL, seed);
    try_scenario("ranks submit in opposite orders", opposed, NULL, seed);
    try_replayed("one tensor at a time is replayed", one_by_one, NULL, seed);
    try_replayed("a rank waits for a tensor that comes later in the replay",
                 waits_differently, NULL, seed);
    try_replayed("a name occurs several times in a step", names_come_back, NULL, seed);
    try_replayed("tensors come that are not in the replay", extra_tensors, NULL, seed);
    try_replayed("all ranks change a shape", new_shapes, NULL, seed);
    try_scenario("all ranks change a shape, with a small cache", new_shapes, &few, seed);
    try_scenario("ranks join at different steps", uneven, NULL, seed);
    try_scenario("ranks join, with a small cache", uneven, &tiny, seed);
}

/* --- replays need no messages --- */

static void test_no_messages(unsigned seed)
{
    static const int nodes[] = {2, 2, 0};
    struct program programs[TRY_MOST_RANKS] = {0};
    struct hvd_agreement_counts before[4];
    bool silent = true;
    struct sim sim;

    sim_init(&sim, nodes, NULL, seed);
    for (int r = 0; r < 4; r++) {
        for (int step = 0; step < 8; step++) {
            try_step(&programs[r], 10, false);
        }
    }
    programs_run(&sim, programs);
    for (int r = 0; r < 4; r++) {
        before[r] = try_counts(&sim, r);
        for (int step = 0; step < 50; step++) {
            try_step(&programs[r], 10, false);
        }
    }
    programs_run(&sim, programs);
    for (int r = 0; r < 4; r++) {
        struct hvd_agreement_counts after = try_counts(&sim, r);

        silent &= after.messages_up == before[r].messages_up &&
                  after.messages_down == before[r].messages_down &&
                  after.replayed > before[r].replayed;
    }
    tap_ok(silent && sim.fault[0] == '\0', "50 replayed steps need no messages");
    sim_finish(&sim);
    programs_finish(programs, TRY_MOST_RANKS);
}

/* --- disagreement --- */

/* After some steps, the program continues with another tensor, which the replay does not
 * have. */
static void test_new_part(unsigned seed)
{
    static const int nodes[] = {2, 1, 0};
    struct program programs[TRY_MOST_RANKS] = {0};
    struct hvd_agreement_counts counts;
    struct sim sim;

    sim_init(&sim, nodes, NULL, seed);
    for (int r = 0; r < 3; r++) {
        for (int step = 0; step < 10; step++) {
            try_step(&programs[r], 10, false);
        }
        for (int step = 0; step < 200; step++) {
            program_submit(&programs[r], 10, "other");
            program_wait(&programs[r]);
        }
    }
    programs_run(&sim, programs);
    counts = try_counts(&sim, 0);
    tap_ok(
        counts.replays == 2 && counts.decided < 150 && sim.fault[0] == '\0',
        "an outdated replay gives way to a new one (%lu replays, %lu batches decided on)",
        (unsigned long)counts.replays, (unsigned long)counts.decided);
    sim_finish(&sim);
    programs_finish(programs, TRY_MOST_RANKS);
}

/* Checks the error for tensor t2, which has 11 elements on rank `odd` and 10 on the
 * others: it must name a rank with each shape. */
static bool names_ranks(const char *text, int odd, int size)
{
    const char *at = strstr(text, " Tensor t2: rank ");
    int ranks[2], elements[2];

    return at != NULL &&
           sscanf(at, " Tensor t2: rank %d has [%d], rank %d has [%d].", &ranks[0],
                  &elements[0], &ranks[1], &elements[1]) == 4 &&
           elements[0] + elements[1] == 21 && ranks[elements[0] == 11 ? 0 : 1] == odd &&
           ranks[elements[0] == 11 ? 1 : 0] != odd && ranks[0] >= 0 && ranks[1] >= 0 &&
           ranks[0] < size && ranks[1] < size;
}

/* Runs ten steps; then rank `odd` gives one tensor another shape; then five more steps
 * follow. */
static void test_one_rank_differs(unsigned seed)
{
    bool told = true, others = true;
    char fault[256] = "";

    for (unsigned round = 0; round < 60; round++) {
        const int *nodes = try_layouts[round % (TRY_LAYOUTS)];
        int size = try_size(nodes), odd = (int)(round / 7) % size;
        struct program programs[TRY_MOST_RANKS] = {0};
        struct sim sim;

        sim_init(&sim, nodes, NULL, seed + round);
        for (int r = 0; r < size; r++) {
            for (int step = 0; step < 15; step++) {
                for (int i = 0; i < 4; i++) {
                    program_submit(&programs[r],
                                   step == 10 && r == odd && i == 2 ? 11 : 10, "t%d", i);
                }
                program_wait(&programs[r]);
            }
        }
        programs_run(&sim, programs);
        for (int r = 0; r < size; r++) {
            int wanted = size > 1 ? 1 : 0;

            others &= programs[r].failures == wanted;
            told &=
                size == 1 ||
                (strstr(programs[r].failure,
                        "Mismatched ALLREDUCE tensor shapes: One rank sent a tensor") !=
                     NULL &&
                 names_ranks(programs[r].failure, odd, size));
        }
        if (sim.fault[0] != '\0' && fault[0] == '\0') {
            snprintf(fault, sizeof(fault), "round %u: %.200s", round, sim.fault);
        }
        sim_finish(&sim);
        programs_finish(programs, TRY_MOST_RANKS);
    }
    tap_ok(told && others && fault[0] == '\0',
           "one rank describes a replayed tensor anew: that tensor fails everywhere, "
           "once, and "
           "is named with a rank of each kind");
    if (fault[0] != '\0' || !told || !others) {
        tap_note("told %d, once %d, %s", told, others, fault);
    }
}

static void test_last_to_join(unsigned seed)
{
    static const int nodes[] = {2, 2, 0};
    struct program programs[TRY_MOST_RANKS] = {0};
    bool same = true;
    struct sim sim;

    sim_init(&sim, nodes, NULL, seed);
    for (int r = 0; r < 4; r++) {
        for (int step = 0; step < (r == 2 ? 9 : 3); step++) {
            try_step(&programs[r], 3, false);
        }
        program_join(&programs[r]);
    }
    programs_run(&sim, programs);
    for (int r = 0; r < 4; r++) {
        same &= programs[r].value == 2;
    }
    tap_ok(same && sim.fault[0] == '\0', "join tells all ranks which rank was last");
    sim_finish(&sim);
    programs_finish(programs, TRY_MOST_RANKS);
}

int main(void)
{
    unsigned seed = tap_seed(20240117);

    hvd_log_least(HVD_LOG_ERROR); /* the warnings that a small cache logs are expected */

    test_scenarios(seed);
    test_no_messages(seed);
    test_new_part(seed);
    test_one_rank_differs(seed);
    test_last_to_join(seed);
    return tap_done();
}
