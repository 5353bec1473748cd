/* SPDX-License-Identifier: Apache-2.0 */
/* The autotuner: steps become samples, samples become decisions. */
#include "collectives/tuner/tuner.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/tuner/median.h"
#include "collectives/tuner/tuner_log.h"
#include "collectives/tuner/tuner_search.h"

/* Of ten steps, those in which the ranks get used to a new setting: they learn a new order
 * of batches. */
static const int settling_of_ten = 4;

/* A sample ends early when each of so many steps that count has been so much slower than the
 * defaults, or each of them at all even more so. */
static const int least_steps = 3;
static const double far_worse = 1.3;
static const double hopeless = 3;

/* So many times the bytes of a step without the marker: it comes no more. */
static const int64_t most_steps_without_marker = 4;

struct hvd_tuner {
    struct hvd_knob knobs[HVD_TUNER_KNOBS];
    struct hvd_tuner_options options;
    struct hvd_search *search;
    struct hvd_tuner_log *log;

    char *marker; /* NULL: none yet */
    int64_t marker_bytes;
    bool is_sure; /* it has come twice */
    int64_t marker_us; /* when it came last */
    int64_t bytes; /* since then */
    int64_t step_bytes; /* of the last step */

    int64_t warmup_steps; /* left */
    double *scores; /* [steps_per_sample] of the steps of this sample */
    int steps;
};

int hvd_tuner_create(const struct hvd_knob *knobs, int count,
                     const struct hvd_tuner_options *options, struct hvd_tuner **out,
                     struct hvd_error *err)
{
    struct hvd_tuner *tuner = calloc(1, sizeof(*tuner));
    int status = 0;

    if (tuner == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the autotuner");
    }
    tuner->options = *options;
    /* Without the step in which the marker shows up first. */
    tuner->warmup_steps =
        (int64_t)options->warmup_samples * options->steps_per_sample - 1;
    tuner->scores = calloc((size_t)options->steps_per_sample, sizeof(tuner->scores[0]));
    if (tuner->scores == NULL) {
        status = hvd_fail(err, HVD_ERR_NOMEM, "no memory for the autotuner");
    }
    for (int i = 0; i < count && i < HVD_TUNER_KNOBS; i++) {
        tuner->knobs[i] = knobs[i];
    }
    status = status != 0 ? status
                         : hvd_search_create(tuner->knobs, count, options->max_trials,
                                             &tuner->search, err);
    if (status != 0) {
        hvd_tuner_destroy(tuner);
        return status;
    }
    if (options->log != NULL) {
        tuner->log = hvd_tuner_log_open(options->log, tuner->knobs, count);
    }
    *out = tuner;
    return 0;
}

void hvd_tuner_destroy(struct hvd_tuner *tuner)
{
    if (tuner == NULL) {
        return;
    }
    hvd_search_destroy(tuner->search);
    hvd_tuner_log_close(tuner->log);
    free(tuner->marker);
    free(tuner->scores);
    free(tuner);
}

/* --- steps --------------------------------------------------------------------------- */

/* What was counted so far belongs to another kind of step. */
static void choose_marker(struct hvd_tuner *tuner, const char *name, int64_t bytes,
                          int64_t now_us)
{
    free(tuner->marker);
    tuner->marker = strdup(name); /* without memory: the next tensor is asked again */
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

/* Whether a step has ended with this tensor. */
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

/* --- samples ------------------------------------------------------------------------- */

/* The scores of the sample that count: those after settling, or all if there are no others. */
static double *counted(const struct hvd_tuner *tuner, int *count)
{
    int settling = tuner->options.steps_per_sample * settling_of_ten / 10;

    settling = tuner->steps > settling ? settling : 0;
    *count = tuner->steps - settling;
    return tuner->scores + settling;
}

static bool are_all_below(const double *scores, int count, double limit)
{
    for (int i = 0; i < count; i++) {
        if (scores[i] > limit) {
            return false;
        }
    }
    return true;
}

static bool is_far_worse(const struct hvd_tuner *tuner)
{
    double reference = hvd_search_reference(tuner->search);
    int count;
    const double *scores = counted(tuner, &count);

    return (tuner->steps >= least_steps &&
            are_all_below(tuner->scores, tuner->steps, reference / hopeless)) ||
           (count >= least_steps && scores > tuner->scores &&
            are_all_below(scores, count, reference / far_worse));
}

static bool end_sample(struct hvd_tuner *tuner)
{
    struct hvd_tuner_setting before = *hvd_search_setting(tuner->search);
    const struct hvd_tuner_setting *after;
    int count;
    double *scores = counted(tuner, &count);
    double score = hvd_median(scores, count);

    tuner->steps = 0;
    hvd_tuner_log_write(tuner->log, &before, score);
    hvd_search_tell(tuner->search, score);
    after = hvd_search_setting(tuner->search);
    if (hvd_search_is_over(tuner->search)) {
        hvd_tuner_log_write(tuner->log, after, hvd_search_score(tuner->search));
        hvd_tuner_log_close(tuner->log);
        tuner->log = NULL;
    }
    return memcmp(&before, after, sizeof(before)) != 0;
}

bool hvd_tuner_ended(struct hvd_tuner *tuner, const char *name, int64_t bytes,
                     int64_t now_us)
{
    int64_t step_us;

    if (hvd_tuner_is_over(tuner) || !ends_step(tuner, name, bytes, now_us)) {
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
    return (tuner->steps == tuner->options.steps_per_sample || is_far_worse(tuner)) &&
           end_sample(tuner);
}

double hvd_tuner_value(const struct hvd_tuner *tuner, int knob)
{
    return tuner->knobs[knob].values[hvd_search_setting(tuner->search)->index[knob]];
}

bool hvd_tuner_is_over(const struct hvd_tuner *tuner)
{
    return hvd_search_is_over(tuner->search);
}
