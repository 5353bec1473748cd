/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of one schedule, in words and in sums. */
#ifndef HVD_BENCH_EXPLAIN_STEPS_H
#define HVD_BENCH_EXPLAIN_STEPS_H

#include <stdio.h>

#include "collectives/schedule/schedule.h"

enum {
    BENCH_TOTAL_IN, /* from the input to shared memory or scratch */
    BENCH_TOTAL_OUT, /* to the output */
    BENCH_TOTAL_ADDED, /* of results */
    BENCH_TOTAL_SENT,
    BENCH_TOTAL_RECEIVED,
    BENCH_TOTALS
};

struct bench_totals {
    int64_t bytes[BENCH_TOTALS];
    int64_t waits; /* for other ranks of the node */
};

struct bench_totals bench_totals_of(struct hvd_schedule *schedule,
                                    const struct hvd_schedule_query *query);

/* A line for each step. Of ticks in a row that differ only in places and numbers, the first. */
void bench_steps_print(struct hvd_schedule *schedule, FILE *out);

#endif
