/* SPDX-License-Identifier: Apache-2.0 */
/* Which setting of the knobs to try next, and which one is best. */
#include "collectives/tuner/tuner_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/tuner/tuner_duel.h"
#include "collectives/tuner/tuner_reference.h"

/* Samples between two of the defaults. */
static const int reference_every = 5;

/* Trials that are spread over all settings before the first prediction. */
static const int seeds = 3;

/* Exploring ends when no setting promises to be this much faster (0.05 %). */
static const double least_promise = 0.0005;

/* At this distance from all trials, half the spread of the gains is expected as an error. */
static const double far_distance = 2;

/* As far apart as this many values are two ways of an unordered knob. */
static const double ways_apart = 3;

/* The gains spread at least by this (2 %); without it a first few equal samples would leave
 * nothing to look for. */
static const double least_spread = 0.02;

/* Samples count as no worse than this (half the speed): how bad the bad ones are tells nothing
 * about the good ones. */
static const double worst_gain = -0.7;

/* A winner that is not this much faster (0.3 %) is not worth a duel. */
static const double least_gain = 0.003;

/* Samples of the best few, to know which is the very best, and how many they are. */
static const int samples_again = 9;
static const int best_few = 3;

enum {
    DEFAULTS = 0, /* the first trial */
};

enum stage {
    STAGE_EXPLORE,
    STAGE_AGAIN,
    STAGE_DUEL,
    STAGE_OVER,
};

struct trial {
    struct hvd_tuner_setting setting;
    int samples;
    double gain; /* of its samples: mean log of score / score of the defaults */
    double precision; /* 1 / variance of gain; 0: not sampled yet */
    double mean; /* predicted from all trials, this one most */
};

struct hvd_search {
    const struct hvd_knob *knobs;
    int knob_count;
    struct trial *trials; /* [max_trials]; the first are the defaults */
    int trial_count;
    int max_trials;
    double spread; /* of the gains: a standard deviation */
    int explored; /* samples */
    int again;
    enum stage stage;
    int asked; /* the trial to sample now, unless the defaults are due */

    struct hvd_reference reference; /* the score of the defaults */
    int since_reference; /* samples */

    struct hvd_duel duel;
    int winner;
};

static bool has_choice(const struct hvd_knob *knobs, int count)
{
    for (int i = 0; i < count; i++) {
        if (knobs[i].count > 1) {
            return true;
        }
    }
    return false;
}

int hvd_search_create(const struct hvd_knob *knobs, int count, int max_trials,
                      struct hvd_search **out, struct hvd_error *err)
{
    struct hvd_search *search;

    if (count < 1 || count > HVD_TUNER_KNOBS || max_trials < 1) {
        return hvd_fail(err, HVD_ERR_ARG, "a search with %d knobs and %d trials", count,
                        max_trials);
    }
    max_trials = max_trials < HVD_SEARCH_TRIALS ? max_trials : HVD_SEARCH_TRIALS;
    search = calloc(1, sizeof(*search));
    if (search != NULL) {
        search->trials = calloc((size_t)max_trials, sizeof(search->trials[0]));
    }
    if (search == NULL || search->trials == NULL) {
        hvd_search_destroy(search);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the autotuner");
    }
    search->knobs = knobs;
    search->knob_count = count;
    search->max_trials = max_trials;
    search->trial_count = 1;
    for (int i = 0; i < count; i++) {
        search->trials[DEFAULTS].setting.index[i] = knobs[i].initial;
    }
    search->stage = has_choice(knobs, count) ? STAGE_EXPLORE : STAGE_OVER;
    *out = search;
    return 0;
}

void hvd_search_destroy(struct hvd_search *search)
{
    if (search != NULL) {
        free(search->trials);
        free(search);
    }
}

/* --- prediction ---------------------------------------------------------------------- */

static void add_sample(struct trial *trial, double gain, double noise)
{
    double precision = 1 / (noise * noise);

    trial->gain = trial->gain * trial->precision + fmax(gain, worst_gain) * precision;
    trial->precision += precision;
    trial->gain /= trial->precision;
    trial->samples++;
}

/* Of two settings, squared; 1 from one value of an ordered knob to the next. */
static double squared_distance(const struct hvd_search *search,
                               const struct hvd_tuner_setting *a,
                               const struct hvd_tuner_setting *b)
{
    double squares = 0;

    for (int i = 0; i < search->knob_count; i++) {
        double apart = abs(a->index[i] - b->index[i]);

        apart = apart > 0 && !search->knobs[i].is_ordered ? ways_apart : apart;
        squares += apart * apart;
    }
    return squares;
}

/* The gain to expect of a setting: the mean of all trials, weighted by their distances to the
 * power of -4. A noisy trial counts less, most of all near its own setting. nearest: the
 * distance of the nearest trial. */
static double predict(const struct hvd_search *search,
                      const struct hvd_tuner_setting *setting, double *nearest)
{
    double sum = 0, weights = 0, least = INFINITY;

    for (int i = 0; i < search->trial_count; i++) {
        const struct trial *trial = &search->trials[i];
        double squares = squared_distance(search, setting, &trial->setting);
        double noise = 1 / (search->spread * search->spread * trial->precision);
        double weight = 1 / (squares * squares + noise);

        if (trial->samples > 0) {
            sum += weight * trial->gain;
            weights += weight;
            least = fmin(least, squares);
        }
    }
    *nearest = sqrt(least);
    return sum / weights;
}

static double spread_of_gains(const struct hvd_search *search)
{
    double sum = 0, squares = 0;
    int count = 0;

    for (int i = 0; i < search->trial_count; i++) {
        const struct trial *trial = &search->trials[i];

        sum += trial->samples * trial->gain;
        squares += trial->samples * trial->gain * trial->gain;
        count += trial->samples;
    }
    return sqrt(
        fmax(squares / count - sum / count * (sum / count), least_spread * least_spread));
}

static void refresh(struct hvd_search *search)
{
    search->spread = spread_of_gains(search);
    for (int i = 0; i < search->trial_count; i++) {
        double nearest;

        search->trials[i].mean = predict(search, &search->trials[i].setting, &nearest);
    }
}

static int best_trial(const struct hvd_search *search)
{
    int best = DEFAULTS;

    for (int i = 1; i < search->trial_count; i++) {
        if (search->trials[i].samples > 0 &&
            (search->trials[i].mean > search->trials[best].mean)) {
            best = i;
        }
    }
    return best;
}

/* --- explore ------------------------------------------------------------------------- */

/* The trial with this setting, a new one if there is none. */
static int find_trial(struct hvd_search *search, const struct hvd_tuner_setting *setting)
{
    for (int i = 0; i < search->trial_count; i++) {
        if (memcmp(&search->trials[i].setting, setting, sizeof(*setting)) == 0) {
            return i;
        }
    }
    search->trials[search->trial_count].setting = *setting;
    return search->trial_count++;
}

/* Spread evenly over all settings, none near another. */
static struct hvd_tuner_setting seed_setting(const struct hvd_search *search, int number)
{
    struct hvd_tuner_setting setting = {0};
    double part = 1;

    for (int i = 0; i < search->knob_count; i++) {
        double place;

        part /=
            1.32471795724474602596; /* the number for two knobs, good enough for more */
        place = fmod(0.5 + (number + 1) * part, 1);
        setting.index[i] = (int)(place * search->knobs[i].count);
    }
    return setting;
}

/* Counts a setting up as an odometer does. Returns false after the last one. */
static bool next_setting(const struct hvd_search *search,
                         struct hvd_tuner_setting *setting)
{
    for (int i = 0; i < search->knob_count; i++) {
        if (++setting->index[i] < search->knobs[i].count) {
            return true;
        }
        setting->index[i] = 0;
    }
    return false;
}

/* The setting that promises most, and how much: its prediction, and the error of that, since
 * luck is worth a trial. */
static double most_promising(const struct hvd_search *search,
                             struct hvd_tuner_setting *found)
{
    struct hvd_tuner_setting setting = {0};
    double best = search->trials[best_trial(search)].mean;
    double most = -1;

    do {
        double distance;
        double promise = predict(search, &setting, &distance) - best;

        promise += search->spread * distance / (distance + far_distance);
        if (promise > most &&
            memcmp(&setting, &search->trials[DEFAULTS].setting, sizeof(setting)) != 0) {
            most = promise;
            *found = setting;
        }
    } while (next_setting(search, &setting));
    return most;
}

static bool next_to_explore(struct hvd_search *search)
{
    struct hvd_tuner_setting setting;

    if (search->explored == search->max_trials - 1) {
        return false;
    }
    if (search->explored < seeds) {
        setting = seed_setting(search, search->explored);
    } else if (most_promising(search, &setting) < least_promise) {
        return false;
    }
    search->explored++;
    search->asked = find_trial(search, &setting);
    return true;
}

/* --- again --------------------------------------------------------------------------- */

/* Of the best few, the one that was sampled least. */
static bool next_again(struct hvd_search *search)
{
    int least = -1;

    if (search->again == samples_again) {
        return false;
    }
    for (int i = 1; i < search->trial_count; i++) {
        int better = 0;

        for (int k = 1; k < search->trial_count; k++) {
            better += search->trials[k].mean > search->trials[i].mean ? 1 : 0;
        }
        if (better < best_few &&
            (least < 0 || search->trials[i].samples < search->trials[least].samples)) {
            least = i;
        }
    }
    if (least > 0) {
        search->again++;
        search->asked = least;
    }
    return least > 0;
}

/* --- all together -------------------------------------------------------------------- */

static void begin_duel(struct hvd_search *search)
{
    int best = best_trial(search);
    bool is_worth_it = search->trials[best].mean > least_gain;

    search->winner = is_worth_it ? best : DEFAULTS;
    search->stage = is_worth_it ? STAGE_DUEL : STAGE_OVER;
}

/* Finds the next trial to sample, stage by stage. */
static void advance(struct hvd_search *search)
{
    refresh(search);
    if (search->stage == STAGE_EXPLORE && !next_to_explore(search)) {
        search->stage = STAGE_AGAIN;
    }
    if (search->stage == STAGE_AGAIN && !next_again(search)) {
        begin_duel(search);
    }
}

static bool is_reference_due(const struct hvd_search *search)
{
    return search->stage < STAGE_DUEL &&
           (search->reference.count == 0 || search->since_reference == reference_every);
}

static void tell_reference(struct hvd_search *search, double log_score)
{
    bool is_first = search->reference.count == 0;

    hvd_reference_add(&search->reference, log_score);
    search->since_reference = 0;
    if (is_first) {
        add_sample(&search->trials[DEFAULTS], 0,
                   hvd_reference_noise(&search->reference) / 10);
        advance(search);
    }
}

static void tell_trial(struct hvd_search *search, double log_score)
{
    add_sample(&search->trials[search->asked], log_score - search->reference.log_score,
               hvd_reference_noise(&search->reference));
    search->since_reference++;
    advance(search);
}

static void tell_duel(struct hvd_search *search, double log_score)
{
    enum hvd_verdict verdict = hvd_duel_tell(&search->duel, log_score);

    if (verdict != HVD_DUEL_OPEN) {
        search->winner = verdict == HVD_DUEL_WON ? search->winner : DEFAULTS;
        search->stage = STAGE_OVER;
    }
}

void hvd_search_tell(struct hvd_search *search, double score)
{
    double log_score = log(score);

    if (search->stage == STAGE_OVER) {
        return;
    }
    if (search->stage == STAGE_DUEL) {
        tell_duel(search, log_score);
    } else if (is_reference_due(search)) {
        tell_reference(search, log_score);
    } else {
        tell_trial(search, log_score);
    }
}

static int trial_now(const struct hvd_search *search)
{
    if (is_reference_due(search)) {
        return DEFAULTS;
    }
    if (search->stage == STAGE_DUEL) {
        return hvd_duel_turn(&search->duel) == 1 ? search->winner : DEFAULTS;
    }
    return search->stage == STAGE_OVER ? search->winner : search->asked;
}

const struct hvd_tuner_setting *hvd_search_setting(const struct hvd_search *search)
{
    return &search->trials[trial_now(search)].setting;
}

bool hvd_search_is_over(const struct hvd_search *search)
{
    return search->stage == STAGE_OVER;
}

double hvd_search_reference(const struct hvd_search *search)
{
    return search->reference.count == 0 ? 0 : exp(search->reference.log_score);
}

double hvd_search_score(const struct hvd_search *search)
{
    return hvd_search_reference(search) * exp(search->trials[trial_now(search)].mean);
}
