/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of progress. In place, a line ends with a carriage return: hvdrun passes it on then, and
 * what comes next overwrites it. */
#include "contrib/bench/hvd_bench/progress.h"

static const double in_place_every = 0.2; /* seconds */
static const double lines_every = 10;
static const double least_share = 0.01; /* that an estimate can be made from */
static const char erase_line[] = "\033[K";

enum bench_progress_style bench_progress_style_for(bool asked, bool stderr_is_terminal)
{
    if (stderr_is_terminal) {
        return BENCH_PROGRESS_IN_PLACE;
    }
    return asked ? BENCH_PROGRESS_LINES : BENCH_PROGRESS_NONE;
}

void bench_progress_begin(struct bench_progress *progress, int total, double now)
{
    progress->total = total;
    progress->done = 0;
    progress->began = now;
}

static void write_rest(char *text, size_t room, double seconds)
{
    if (seconds < 100) {
        snprintf(text, room, ", about %.0f s left", seconds);
    } else {
        snprintf(text, room, ", about %.0f min left", seconds / 60);
    }
}

void bench_progress_show(struct bench_progress *progress, double part, const char *what,
                         double now)
{
    bool is_in_place = progress->style == BENCH_PROGRESS_IN_PLACE;
    double every = is_in_place ? in_place_every : lines_every;
    double share = progress->total > 0 ? (progress->done + part) / progress->total : 0;
    char rest[48] = "";

    if (progress->style == BENCH_PROGRESS_NONE ||
        (progress->shown > 0 && now - progress->shown < every)) {
        return;
    }
    if (share >= least_share) {
        write_rest(rest, sizeof(rest), (now - progress->began) * (1 - share) / share);
    }
    if (progress->total > 0) {
        fprintf(progress->out, "%s%d of %d done%s: %s%s", is_in_place ? erase_line : "# ",
                progress->done, progress->total, rest, what, is_in_place ? "\r" : "\n");
    } else {
        fprintf(progress->out, "%s%s%s", is_in_place ? erase_line : "# ", what,
                is_in_place ? "\r" : "\n");
    }
    fflush(progress->out);
    progress->shown = now;
    progress->is_drawn = is_in_place;
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
