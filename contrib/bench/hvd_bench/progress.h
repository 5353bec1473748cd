/* SPDX-License-Identifier: Apache-2.0 */
/* A line on a terminal with the work that is measured, the share that is done, and an
 * estimate of the remaining time. It is overwritten in place, and erased before anything
 * else is printed. */
#ifndef HVD_BENCH_PROGRESS_H
#define HVD_BENCH_PROGRESS_H

#include <stdbool.h>
#include <stdio.h>

/* The caller sets out; with NULL nothing is shown. */
struct bench_progress {
    FILE *out;
    int total, done; /* works */
    double began, shown; /* seconds */
    bool is_drawn;
};

/* Starts the line for a number of works. All times are seconds of one clock. */
void bench_progress_begin(struct bench_progress *progress, int total, double now);

/* Shows the line. part: the share of the present work that is done, 0 to 1. Before begin,
 * only `what` is shown. */
void bench_progress_show(struct bench_progress *progress, double part, const char *what,
                         double now);
void bench_progress_step(struct bench_progress *progress); /* counts a work as done */
void bench_progress_erase(struct bench_progress *progress);

#endif
