/* SPDX-License-Identifier: Apache-2.0 */
/* Runs scenarios: each on several layouts, with several seeds. */
#include "tests/collectives/agreement/agreement_try.h"

#include <stdio.h>

enum {
    ROUNDS = 8
};

static char fault[1024]; /* the fault of the last scenario */

const int try_layouts[TRY_LAYOUTS][8] = {
    {1, 0}, {2, 0}, {4, 0}, {1, 1, 0}, {2, 2, 0}, {3, 1, 2, 0}, {1, 1, 1, 1, 1, 0},
};

int try_size(const int *nodes)
{
    int size = 0;

    for (int i = 0; nodes[i] > 0; i++) {
        size += nodes[i];
    }
    return size;
}

struct hvd_agreement_counts try_counts(const struct sim *sim, int rank)
{
    struct hvd_agreement_counts counts;

    hvd_agreement_count(sim->ranks[rank].agreement, &counts);
    return counts;
}

void try_step(struct program *program, int tensors, bool turned)
{
    for (int i = 0; i < tensors; i++) {
        int number = turned ? i : tensors - 1 - i;

        program_submit(program, 100 + number, "gradient.%d", number);
    }
    program_wait(program);
}

/* Returns the text of a failure that was not expected, or NULL. */
static const char *find_failure(const struct program *programs, int size)
{
    for (int i = 0; i < size; i++) {
        if (programs[i].surprises > 0) {
            return programs[i].failure;
        }
    }
    return NULL;
}

static bool try_once(const int *nodes, scenario *write,
                     const struct hvd_agreement_settings *settings, bool is_replayed,
                     unsigned seed)
{
    struct program programs[TRY_MOST_RANKS] = {0};
    struct hvd_agreement_counts counts;
    const char *failure;
    struct sim sim;
    bool passed;

    sim_init(&sim, nodes, settings, seed);
    sim.slow_rank = (int)(seed % (2 * (unsigned)sim.layout.size));
    write(programs, sim.layout.size, seed);
    programs_run(&sim, programs);
    counts = try_counts(&sim, 0);
    failure = find_failure(programs, sim.layout.size);
    passed =
        sim.fault[0] == '\0' && failure == NULL && (!is_replayed || counts.replayed > 0);
    if (!passed) {
        snprintf(fault, sizeof(fault),
                 "%d ranks, seed %u: %s; replayed %lu, decided %lu, failures: %s",
                 sim.layout.size, seed, sim.fault, (unsigned long)counts.replayed,
                 (unsigned long)counts.decided, failure != NULL ? failure : "none");
    }
    sim_finish(&sim);
    programs_finish(programs, TRY_MOST_RANKS);
    return passed;
}

const char *try_programs(scenario *write, const struct hvd_agreement_settings *settings,
                         bool is_replayed, unsigned seed)
{
    for (int i = 0; i < TRY_LAYOUTS; i++) {
        for (unsigned round = 0; round < ROUNDS; round++) {
            if (!try_once(try_layouts[i], write, settings, is_replayed,
                          seed + 977 * round)) {
                return fault;
            }
        }
    }
    return NULL;
}
