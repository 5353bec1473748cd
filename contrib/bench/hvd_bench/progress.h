/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a run is done and how long the rest will take: one line on a terminal that is
 * overwritten in place, or, in a log, a line from time to time. Pure but for the output. */
#ifndef HVD_BENCH_PROGRESS_H
#define HVD_BENCH_PROGRESS_H

#include <stdbool.h>
#include <stdio.h>

enum bench_progress_style {
    BENCH_PROGRESS_NONE,
    BENCH_PROGRESS_IN_PLACE,
    BENCH_PROGRESS_LINES
};

/* A run consists of `total` works. Times are in seconds, monotonic. */
struct bench_progress {
    FILE *out; /* borrowed */
    enum bench_progress_style style; /* zeroed: NONE */
    int total;
    int done;
    double began;
    double shown; /* when the last line was; 0: never */
    bool is_drawn; /* in place, and not erased since */
};

/* asked: by an option. stderr_is_terminal: perhaps behind the pipe of a launcher. */
enum bench_progress_style bench_progress_style_for(bool asked, bool stderr_is_terminal);

/* The works begin now. */
void bench_progress_begin(struct bench_progress *progress, int total, double now);

/* part: what is done of the present work, 0 to 1; what: its name. Most calls do nothing, since
 * lines come no more often than they can be read. */
void bench_progress_show(struct bench_progress *progress, double part, const char *what,
                         double now);

void bench_progress_step(struct bench_progress *progress); /* a work is done */

/* To be called before anything else is printed. */
void bench_progress_erase(struct bench_progress *progress);

#endif
