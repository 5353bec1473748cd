/* SPDX-License-Identifier: Apache-2.0 */
/* The report on who was late, as a table for people and as JSON for programs. Pure but
 * for the stream that is written to. */
#ifndef HVD_STRAGGLER_TEXT_H
#define HVD_STRAGGLER_TEXT_H

#include <stdio.h>

#include "collectives/trace/straggler_waits.h"

struct hvd_straggler_job {
    const char *const *hosts; /* [ranks] */
    int64_t elapsed_us; /* since init */
};

/* A table of the ranks, those that cost the others most first and at most `most` of them,
 * and one of the collectives. */
void hvd_straggler_print(const struct hvd_straggler_sums *sums,
                         const struct hvd_straggler_job *job, int most, FILE *out);

/* One object. Times are whole microseconds, so that no language's comma can get in. */
void hvd_straggler_print_json(const struct hvd_straggler_sums *sums,
                              const struct hvd_straggler_job *job, FILE *out);

#endif
