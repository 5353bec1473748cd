/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict of the straggler report: the rank that delayed the others most, and the
 * section in which it lost the time. Pure, except for the stream that it writes to. */
#ifndef HVD_STRAGGLER_VERDICT_H
#define HVD_STRAGGLER_VERDICT_H

#include <stdio.h>

#include "collectives/trace/straggler_text.h"

struct hvd_straggler_verdict {
    int rank; /* -1: no rank stands out */
    int section; /* index in the sums' sections; -1: none explains the lateness */
    /* Time that the late rank spent in the section beyond the median of the others, at
     * most its lateness. */
    int64_t section_us;
};

/* A rank stands out if its lateness is at least 1 % of the job's time, and more than
 * twice that of any other rank. A section is named if it explains at least a quarter of
 * the lateness. */
struct hvd_straggler_verdict hvd_straggler_judge(const struct hvd_straggler_sums *sums,
                                                 const struct hvd_straggler_job *job);

/* Returns the median over the ranks, except rank `without` (-1: all), of the time in a
 * section; 0 if memory is out. */
int64_t hvd_straggler_section_median(const struct hvd_straggler_sums *sums, int section,
                                     int without);

/* Prints the verdict as one or two sentences, without a newline. */
void hvd_straggler_print_verdict(const struct hvd_straggler_sums *sums,
                                 const struct hvd_straggler_job *job, FILE *out);

#endif
