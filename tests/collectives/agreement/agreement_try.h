/* SPDX-License-Identifier: Apache-2.0 */
/* Runs scenarios: each on several layouts, with several seeds. Each prints one line of
 * TAP. */
#ifndef HVD_AGREEMENT_TRY_H
#define HVD_AGREEMENT_TRY_H

#include "tests/collectives/agreement/agreement_program.h"
#include "tests/tap.h"

enum {
    TRY_MOST_RANKS = 32,
    TRY_LAYOUTS = 7
};

extern const int try_layouts[TRY_LAYOUTS][8]; /* ranks per node, ended by 0 */

int try_size(const int *nodes);

/* Writes the programs of all ranks. */
typedef void scenario(struct program *programs, int size, unsigned seed);

/* Runs a scenario. All programs must end, and requests without an ending of their own
 * must succeed. If is_replayed, some batches must have been replayed. Settings: NULL for
 * the defaults. Returns NULL, or the fault, valid until the next call. */
const char *try_programs(scenario *write, const struct hvd_agreement_settings *settings,
                         bool is_replayed, unsigned seed);

/* Prints the result as a line of TAP. */
static inline void try_scenario(const char *promise, scenario *write,
                                const struct hvd_agreement_settings *settings,
                                unsigned seed)
{
    const char *fault = try_programs(write, settings, false, seed);

    if (!tap_ok(fault == NULL, "%s", promise)) {
        tap_note("%s", fault);
    }
}

static inline void try_replayed(const char *promise, scenario *write,
                                const struct hvd_agreement_settings *settings,
                                unsigned seed)
{
    const char *fault = try_programs(write, settings, true, seed);

    if (!tap_ok(fault == NULL, "%s", promise)) {
        tap_note("%s", fault);
    }
}

/* Adds a training step: submits the tensors, from the last to the first or the other way
 * round, and waits for them. */
void try_step(struct program *program, int tensors, bool turned);

struct hvd_agreement_counts try_counts(const struct sim *sim, int rank);

#endif
