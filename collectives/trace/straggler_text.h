/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the straggler report as a table for people and as JSON for programs. Pure,
 * except for the stream that it writes to. */
#ifndef HVD_STRAGGLER_TEXT_H
#define HVD_STRAGGLER_TEXT_H

#include <stdio.h>

#include "collectives/trace/straggler_binding.h"
#include "collectives/trace/straggler_waits.h"

struct hvd_straggler_job {
    const char *const *hosts; /* [ranks] */
    int64_t elapsed_us; /* since init */
    /* [ranks] for the page, zeroed for a rank that has not told its own; NULL: none */
    const struct hvd_straggler_binding *bindings;
};

/* Prints the verdict, a table of the ranks, those with the most lateness first and at
 * most `most` of them, a table of the collectives, and one of the sections if there are
 * any. */
void hvd_straggler_print(const struct hvd_straggler_sums *sums,
                         const struct hvd_straggler_job *job, int most, FILE *out);

/* Prints a JSON object. Times are whole microseconds, so that no locale can put a comma
 * into them. */
void hvd_straggler_print_json(const struct hvd_straggler_sums *sums,
                              const struct hvd_straggler_job *job, FILE *out);

#endif
