/* SPDX-License-Identifier: Apache-2.0 */
/* The autotuner: groups steps into samples, and samples into rounds. */
#include "collectives/tuner/tuner.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/log.h"

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

static const double mebibyte = 1024 * 1024;

/* The grid: every combination of these values is a candidate. After the first round,
 * settings with half and twice each value of the best candidate join as its neighbours.
 * In simulated jobs (tests/collectives/tuner) steps with the resulting setting take 0.4 %
 * longer than with the best of 100 settings. */
static const double thresholds_mib[] = {2, 16, 64, 256};
static const double cycles_ms[] = {0.1, 1, 2.5, 5};

/* The number of candidates in each round; the neighbours come in addition. The last
 * rounds compare only the defaults and the best candidate, to tell whether that one is
 * faster beyond the noise. */
static const int rounds[] = {17, 5, 5, 3, 3, 2, 2, 2, 2};

/* Steps through the grid so that settings that are far apart come first, in case
 * max_trials cuts the search. The stride and the size of the grid have no common factor,
 * so every setting is visited. */
static const int grid_stride = 7;

/* The number of steps, out of ten in a sample, in which the ranks adapt to a new setting:
 * they learn a new order of batches. */
static const int settling_of_ten = 4;

/* A sample ends early if all its steps so far, at least least_steps, took three times as
 * long as with the defaults. */
static const int least_steps = 3;
static const double hopeless = 3;

/* A winner that is not this much faster (0.3 %) is not worth the change. */
static const double least_gain = 0.003;

/* The tuner chooses a new marker when tensors with the bytes of more than this many steps
 * have ended since the marker last came. */
static const int64_t most_steps_without_marker = 4;

enum {
    NEIGHBOURS = 4,
    MOST_TRIALS = 1 + LENGTH(thresholds_mib) * LENGTH(cycles_ms) + NEIGHBOURS,
    DEFAULTS = 0, /* the index of the defaults in trials */
};

struct trial {
    struct hvd_tuner_setting setting;
    double scores[LENGTH(rounds)]; /* by round: the logarithm of bytes / us */
    /* in the first round the score, later the sum of the scores of all other rounds */
    double sum;
};

struct hvd_tuner {
    struct hvd_tuner_options options;
    struct trial trials[MOST_TRIALS]; /* the trials of the current round come first */
    int trial_count; /* trials in the current round */
    int tried; /* trials added so far, at most max_trials */
    int round;
    int next; /* number of the next sample in the round */
    bool is_over; /* trials[0] has won */
    FILE *log;
    char *log_path;

    char *marker; /* NULL until chosen */
    int64_t marker_bytes;
    bool is_sure; /* the marker has come twice, so it ends steps */
    int64_t marker_us; /* time when the marker came last */
    int64_t bytes; /* bytes of the tensors since then */
    int64_t step_bytes; /* bytes of the last step */

    int64_t warmup_steps; /* steps of the warm-up that are left */
    double *scores; /* [steps_per_sample] bytes / us of this sample's steps */
    int steps;
};

/* --- candidates --- */

/* Adds a trial, unless there are max_trials already or an equal one exists. Values that
 * the user has fixed stay as they are. */
static void add_trial(struct hvd_tuner *tuner, double threshold, double cycle_ms)
{
    struct hvd_tuner_setting setting = tuner->options.defaults;

    if (!tuner->options.has_fusion_threshold) {
        setting.fusion_threshold = (int64_t)threshold;
    }
    if (!tuner->options.has_cycle_time) {
        setting.cycle_time_ms = cycle_ms;
    }
    if (tuner->tried == tuner->options.max_trials) {
        return;
    }
    for (int i = 0; i < tuner->trial_count; i++) {
        const struct hvd_tuner_setting *other = &tuner->trials[i].setting;

        if (other->fusion_threshold == setting.fusion_threshold &&
            other->cycle_time_ms == setting.cycle_time_ms) {
            return;
        }
    }
    tuner->trials[tuner->trial_count++] = (struct trial){.setting = setting};
    tuner->tried++;
}

static void add_grid(struct hvd_tuner *tuner)
{
    const int cycles = LENGTH(cycles_ms), size = LENGTH(thresholds_mib) * cycles;

    for (int i = 0; i < size; i++) {
        int at = i * grid_stride % size;

        add_trial(tuner, thresholds_mib[at / cycles] * mebibyte, cycles_ms[at % cycles]);
    }
}

static void add_neighbours(struct hvd_tuner *tuner, struct hvd_tuner_setting best)
{
    const double threshold = (double)best.fusion_threshold;

    add_trial(tuner, threshold, best.cycle_time_ms * 2);
    add_trial(tuner, threshold, best.cycle_time_ms / 2);
    add_trial(tuner, threshold / 2, best.cycle_time_ms);
    add_trial(tuner, threshold * 2, best.cycle_time_ms);
}

/* --- the log --- */

static void close_log(struct hvd_tuner *tuner)
{
    if (tuner->log != NULL) {
        fclose(tuner->log);
    }
    tuner->log = NULL;
}

/* Gives the log up after the first error, so that a full disk causes one warning only. */
static void give_log_up(struct hvd_tuner *tuner)
{
    hvd_log(HVD_LOG_WARN, "cannot write the autotuner's log %s: %s; tuning goes on",
            tuner->log_path, strerror(errno));
    close_log(tuner);
}

static void open_log(struct hvd_tuner *tuner)
{
    tuner->log = fopen(tuner->log_path, "we");
    if (tuner->log == NULL ||
        fputs("hierarchical_allreduce,hierarchical_allgather,torus_allreduce,"
              "cache_enabled,cycle_time_ms,tensor_fusion_threshold,score\n",
              tuner->log) < 0 ||
        fflush(tuner->log) != 0) {
        give_log_up(tuner);
    }
}

/* The first four columns are constant: hvd always reduces within a node first, and always
 * caches tensors. */
static void write_log(struct hvd_tuner *tuner, const struct hvd_tuner_setting *setting,
                      double score)
{
    if (tuner->log == NULL) {
        return;
    }
    fprintf(tuner->log, "1,1,0,1,%g,%g,%g\n", setting->cycle_time_ms,
            (double)setting->fusion_threshold / mebibyte, score);
    if (fflush(tuner->log) != 0) {
        give_log_up(tuner);
    }
}

/* --- create and destroy --- */

int hvd_tuner_create(const struct hvd_tuner_options *options, struct hvd_tuner **out,
                     struct hvd_error *err)
{
    struct hvd_tuner *tuner = calloc(1, sizeof(*tuner));

    if (tuner != NULL) {
        tuner->options = *options;
        /* Leaves out the step in which the marker first appears. */
        tuner->warmup_steps =
            (int64_t)options->warmup_samples * options->steps_per_sample - 1;
        tuner->scores =
            calloc((size_t)options->steps_per_sample, sizeof(tuner->scores[0]));
        tuner->log_path = strdup(options->log != NULL ? options->log : "");
    }
    if (tuner == NULL || tuner->scores == NULL || tuner->log_path == NULL) {
        hvd_tuner_destroy(tuner);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the autotuner");
    }
    tuner->trials[DEFAULTS].setting = options->defaults;
    tuner->trial_count = tuner->tried = 1;
    add_grid(tuner);
    tuner->is_over = tuner->trial_count == 1;
    if (options->log != NULL) {
        open_log(tuner);
    }
    *out = tuner;
    return 0;
}

void hvd_tuner_destroy(struct hvd_tuner *tuner)
{
    if (tuner == NULL) {
        return;
    }
    close_log(tuner);
    free(tuner->log_path);
    free(tuner->marker);
    free(tuner->scores);
    free(tuner);
}

/* --- steps --- */

/* Makes a tensor the new marker and starts the sample over, because its earlier steps
 * ended at another marker. */
static void choose_marker(struct hvd_tuner *tuner, const char *name, int64_t bytes,
                          int64_t now_us)
{
    free(tuner->marker);
    /* NULL if out of memory: then the next tensor becomes the marker */
    tuner->marker = strdup(name);
    tuner->marker_bytes = bytes;
    tuner->is_sure = false;
    tuner->marker_us = now_us;
    tuner->bytes = 0;
    tuner->steps = 0;
}

static bool is_lost(const struct hvd_tuner *tuner)
{
    return tuner->is_sure && tuner->bytes > most_steps_without_marker * tuner->step_bytes;
}

/* Whether this tensor ends a step. */
static bool ends_step(struct hvd_tuner *tuner, const char *name, int64_t bytes,
                      int64_t now_us)
{
    bool is_larger = !tuner->is_sure && bytes > tuner->marker_bytes;

    if (tuner->marker == NULL || is_larger || is_lost(tuner)) {
        choose_marker(tuner, name, bytes, now_us);
        return false;
    }
    tuner->bytes += bytes;
    return bytes == tuner->marker_bytes && strcmp(name, tuner->marker) == 0;
}

/* --- samples --- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Returns the median of the scores of the sample's steps, without those in which the
 * ranks adapt. If the sample ended before that, takes all its steps. */
static double score_of_sample(struct hvd_tuner *tuner)
{
    int settling = tuner->options.steps_per_sample * settling_of_ten / 10;
    int first = tuner->steps > settling ? settling : 0;
    int count = tuner->steps - first;
    double *scores = tuner->scores + first;

    qsort(scores, (size_t)count, sizeof(scores[0]), compare_doubles);
    return (scores[(count - 1) / 2] + scores[count / 2]) / 2;
}

static bool is_hopeless(const struct hvd_tuner *tuner)
{
    if (tuner->steps < least_steps || tuner->round + tuner->next == 0) {
        return false;
    }
    for (int i = 0; i < tuner->steps; i++) {
        if (log(tuner->scores[i] * hopeless) > tuner->trials[DEFAULTS].scores[0]) {
            return false;
        }
    }
    return true;
}

/* --- rounds --- */

/* Returns the index of the trial to sample now. Every second round runs backwards, so
 * that drift of the machine favours no trial. */
static int trial_now(const struct hvd_tuner *tuner)
{
    if (tuner->is_over) {
        return 0;
    }
    return tuner->round % 2 == 0 ? tuner->next : tuner->trial_count - 1 - tuner->next;
}

static int compare_trials(const void *a, const void *b)
{
    double x = ((const struct trial *)a)->sum, y = ((const struct trial *)b)->sum;

    return (x < y) - (x > y);
}

/* Whether the best trial beats the defaults by more than the noise: its lead over them,
 * averaged over the rounds after the first, is more than twice the standard error. */
static bool is_faster(const struct trial *best, const struct trial *defaults)
{
    const int count = LENGTH(rounds) - 1;
    double mean = 0, squares = 0;

    for (int i = 1; i <= count; i++) {
        double lead = best->scores[i] - defaults->scores[i];

        mean += lead / count;
        squares += lead * lead;
    }
    return mean > least_gain &&
           mean > 2 * sqrt(fmax(squares / count - mean * mean, 0) / (count - 1));
}

/* Ends a round. The best trials go on to the next one; the defaults always do. After the
 * first round the neighbours of the best trial join, and all sums start anew, because the
 * best were partly lucky. */
static void end_round(struct hvd_tuner *tuner)
{
    struct trial *trials = tuner->trials;

    qsort(&trials[1], (size_t)tuner->trial_count - 1, sizeof(trials[0]), compare_trials);
    tuner->next = 0;
    tuner->round++;
    if (tuner->round == LENGTH(rounds)) {
        tuner->is_over = true;
        if (is_faster(&trials[1], &trials[DEFAULTS])) {
            trials[0] = trials[1];
        }
        return;
    }
    tuner->trial_count = tuner->trial_count < rounds[tuner->round] ? tuner->trial_count
                                                                   : rounds[tuner->round];
    if (tuner->round == 1) {
        add_neighbours(tuner, trials[trials[1].sum > trials[0].sum ? 1 : 0].setting);
        for (int i = 0; i < tuner->trial_count; i++) {
            trials[i].sum = 0;
        }
    }
}

static bool end_sample(struct hvd_tuner *tuner)
{
    const struct hvd_tuner_setting before = *hvd_tuner_setting(tuner), *after;
    struct trial *trial = &tuner->trials[trial_now(tuner)];
    double score = score_of_sample(tuner);

    tuner->steps = 0;
    write_log(tuner, &before, score);
    trial->scores[tuner->round] = log(score);
    trial->sum += log(score);
    tuner->next++;
    if (tuner->next == tuner->trial_count) {
        end_round(tuner);
    }
    after = hvd_tuner_setting(tuner);
    if (tuner->is_over) {
        write_log(tuner, after, exp(tuner->trials[0].sum / (LENGTH(rounds) - 1)));
        close_log(tuner);
    }
    return before.fusion_threshold != after->fusion_threshold ||
           before.cycle_time_ms != after->cycle_time_ms;
}

bool hvd_tuner_ended(struct hvd_tuner *tuner, const char *name, int64_t bytes,
                     int64_t now_us)
{
    int64_t step_us;

    if (tuner->is_over || !ends_step(tuner, name, bytes, now_us)) {
        return false;
    }
    step_us = now_us > tuner->marker_us ? now_us - tuner->marker_us : 1;
    tuner->step_bytes = tuner->bytes;
    tuner->marker_us = now_us;
    tuner->bytes = 0;
    tuner->is_sure = true;
    if (tuner->warmup_steps > 0) {
        tuner->warmup_steps--;
        return false;
    }
    tuner->scores[tuner->steps++] = (double)tuner->step_bytes / (double)step_us;
    return (tuner->steps == tuner->options.steps_per_sample || is_hopeless(tuner)) &&
           end_sample(tuner);
}

const struct hvd_tuner_setting *hvd_tuner_setting(const struct hvd_tuner *tuner)
{
    return &tuner->trials[trial_now(tuner)].setting;
}

bool hvd_tuner_is_over(const struct hvd_tuner *tuner)
{
    return tuner->is_over;
}
