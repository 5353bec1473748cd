/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict of the straggler report. */
#include "collectives/trace/straggler_verdict.h"

#include <inttypes.h>
#include <stdlib.h>

#include "collectives/trace/straggler_cell.h"

static int compare_times(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a;
    const int64_t right = *(const int64_t *)b;

    return left < right ? -1 : left > right;
}

int64_t hvd_straggler_section_median(const struct hvd_straggler_sums *sums, int section,
                                     int without)
{
    int64_t *times = calloc((size_t)sums->size, sizeof(times[0]));
    int64_t median = 0;
    int count = 0;

    if (times == NULL) {
        return 0;
    }
    for (int i = 0; i < sums->size; i++) {
        if (i != without) {
            times[count++] = sums->section_ns[(size_t)i * HVD_SECTIONS + section];
        }
    }
    if (count > 0) {
        qsort(times, (size_t)count, sizeof(times[0]), compare_times);
        median = times[count / 2];
    }
    free(times);
    return median;
}

/* Returns the rank with the most lateness, or -1 if it does not stand out. */
static int find_rank(const struct hvd_straggler_sums *sums,
                     const struct hvd_straggler_job *job)
{
    int64_t second_us = 0;
    int rank = 0;

    for (int i = 1; i < sums->size; i++) {
        int64_t late_us = sums->ranks[i].late_us;

        if (late_us > sums->ranks[rank].late_us) {
            second_us = sums->ranks[rank].late_us;
            rank = i;
        } else if (late_us > second_us) {
            second_us = late_us;
        }
    }
    return sums->ranks[rank].late_us > 0 &&
                   sums->ranks[rank].late_us >= job->elapsed_us / 100 &&
                   sums->ranks[rank].late_us / 2 > second_us
               ? rank
               : -1;
}

struct hvd_straggler_verdict hvd_straggler_judge(const struct hvd_straggler_sums *sums,
                                                 const struct hvd_straggler_job *job)
{
    struct hvd_straggler_verdict verdict = {find_rank(sums, job), -1, 0};
    int64_t late_us = verdict.rank >= 0 ? sums->ranks[verdict.rank].late_us : 0;

    for (int i = 0; verdict.rank >= 0 && i < sums->section_count; i++) {
        int64_t own_ns = sums->section_ns[(size_t)verdict.rank * HVD_SECTIONS + i];
        int64_t more_us =
            (own_ns - hvd_straggler_section_median(sums, i, verdict.rank)) / 1000;

        more_us = more_us < late_us ? more_us : late_us;
        if (more_us >= late_us / 4 && more_us > verdict.section_us) {
            verdict.section = i;
            verdict.section_us = more_us;
        }
    }
    return verdict;
}

static double percent_of(int64_t part, int64_t whole)
{
    double percent = whole > 0 ? 100.0 * (double)part / (double)whole : 0;

    return percent < 100 ? percent : 100;
}

void hvd_straggler_print_verdict(const struct hvd_straggler_sums *sums,
                                 const struct hvd_straggler_job *job, FILE *out)
{
    const struct hvd_straggler_verdict verdict = hvd_straggler_judge(sums, job);
    const struct hvd_straggler_rank *rank;
    char mean[HVD_STRAGGLER_CELL];

    if (verdict.rank < 0) {
        fputs("No rank stands out as late.", out);
        return;
    }
    rank = &sums->ranks[verdict.rank];
    fprintf(out,
            "Rank %d on %s was the last in %" PRId64 " of %" PRId64
            " batches, by %s; the job lost %.0f %% of its time waiting for it",
            verdict.rank, job->hosts[verdict.rank], rank->last, sums->compared,
            hvd_straggler_time_text(mean, (double)rank->late_us / (double)rank->last),
            percent_of(rank->late_us, job->elapsed_us));
    if (verdict.section >= 0) {
        fprintf(out, ", %.0f %% of that in section '%s'",
                percent_of(verdict.section_us, rank->late_us),
                sums->sections[verdict.section].name);
    }
    fputc('.', out);
}
