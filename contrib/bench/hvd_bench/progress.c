/* SPDX-License-Identifier: Apache-2.0 */
/* Each line ends with a carriage return, so that hvdrun passes it on at once and the next
 * output overwrites it. */
#include "contrib/bench/hvd_bench/progress.h"

static const double interval = 0.2; /* seconds */
static const double least_share = 0.01; /* no estimate before this share is done */
static const char erase_line[] = "\033[K";

void bench_progress_begin(struct bench_progress *progress, int total, double now)
{
    progress->total = total;
    progress->done = 0;
    progress->began = now;
}

static void print_rest(FILE *out, double seconds)
{
    if (seconds < 100) {
        fprintf(out, ", about %.0f s left", seconds);
    } else {
        fprintf(out, ", about %.0f min left", seconds / 60);
    }
}

void bench_progress_show(struct bench_progress *progress, double part, const char *what,
                         double now)
{
    double share = progress->total > 0 ? (progress->done + part) / progress->total : 0;

    if (progress->out == NULL ||
        (progress->shown > 0 && now - progress->shown < interval)) {
        return;
    }
    fputs(erase_line, progress->out);
    if (progress->total > 0) {
        fprintf(progress->out, "%d of %d done", progress->done, progress->total);
        if (share >= least_share) {
            print_rest(progress->out, (now - progress->began) * (1 - share) / share);
        }
        fputs(": ", progress->out);
    }
    fprintf(progress->out, "%s\r", what);
    fflush(progress->out);
    progress->shown = now;
    progress->is_drawn = true;
}

void bench_progress_step(struct bench_progress *progress)
{
    progress->done++;
}

void bench_progress_erase(struct bench_progress *progress)
{
    if (progress->is_drawn) {
        fprintf(progress->out, "%s\r", erase_line);
        fflush(progress->out);
        progress->is_drawn = false;
        progress->shown = 0;
    }
}
