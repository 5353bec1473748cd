/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the settings that the autotuner finds in simulated jobs: several models on random
 * clusters. */
#include "collectives/tuner/tuner.h"

#include <math.h>

#include "tests/collectives/tuner/tuner_jobs.h"
#include "tests/tap.h"

enum {
    JOBS = 40, /* number of jobs for each model and level of noise */
};

static const double default_threshold = 128 << 20;
static const double default_cycle_ms = 1;

static const struct hvd_tuner_options horovods = {
    .defaults = {.fusion_threshold = 128 << 20, .cycle_time_ms = 1},
    .warmup_samples = 3,
    .steps_per_sample = 10,
    .max_trials = 20};

/* Results of tuning several jobs: of the worst job, or means. The members with `above`
 * are shares by which a step without noise is slower. */
struct outcome {
    int steps;
    double above_best; /* tuned setting against the best that best_us finds */
    double mean_above_best;
    double above_defaults;
    double defaults_above_best; /* mean; defaults against the best setting */
};

static struct hvd_tuner *make_tuner(const struct hvd_tuner_options *options)
{
    struct hvd_tuner *tuner = NULL;

    if (hvd_tuner_create(options, &tuner, NULL) != 0) {
        printf("Bail out! no memory\n");
        exit(1);
    }
    return tuner;
}

static double best_us(const struct job *job)
{
    static const double thresholds_mib[] = {0, 1, 2, 4, 8, 16, 32, 64, 128, 256};
    static const double cycles_ms[] = {0, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50};
    double best = INFINITY;

    for (int i = 0; i < 10; i++) {
        for (int k = 0; k < 10; k++) {
            best =
                fmin(best, job_step_us(job, thresholds_mib[i] * 1048576, cycles_ms[k]));
        }
    }
    return best;
}

static void add_outcome(struct outcome *outcome, struct job *job)
{
    struct hvd_tuner *tuner = make_tuner(&horovods);
    int steps = job_train(job, tuner, 10000);
    double best = best_us(job), tuned = job_tuned_us(job, tuner);
    double defaults = job_step_us(job, default_threshold, default_cycle_ms);

    outcome->steps = steps > outcome->steps ? steps : outcome->steps;
    outcome->above_best = fmax(outcome->above_best, tuned / best - 1);
    outcome->mean_above_best += (tuned / best - 1) / JOBS;
    outcome->above_defaults = fmax(outcome->above_defaults, tuned / defaults - 1);
    outcome->defaults_above_best += (defaults / best - 1) / JOBS;
    hvd_tuner_destroy(tuner);
}

/* Tests jobs of one model. bounds[0] and bounds[1]: by how much a step may be slower than
 * with the best setting, on average and in the worst case; bounds[2]: by how much it may
 * be slower than with the defaults. */
static void test_model(enum model model, struct noise noise, unsigned seed,
                       const double bounds[3])
{
    struct outcome outcome = {.above_defaults = -1};
    const char *name = model_name(model);

    for (unsigned i = 0; i < JOBS; i++) {
        struct job job;

        job_draw(&job, model, noise, seed * JOBS + i);
        add_outcome(&outcome, &job);
    }
    tap_note("%s: the defaults are %.1f %% above the best on average, tuned jobs %.2f %%",
             name, outcome.defaults_above_best * 100, outcome.mean_above_best * 100);
    tap_ok(outcome.steps <= 500, "%s with %g %% noise is tuned within 500 steps: %d",
           name, noise.step * 100, outcome.steps);
    tap_ok(outcome.mean_above_best < bounds[0],
           "%s: on average at most %g %% above the best setting", name, bounds[0] * 100);
    tap_ok(outcome.above_best < bounds[1],
           "%s: never more than %g %% above the best setting: %.2f %%", name,
           bounds[1] * 100, outcome.above_best * 100);
    tap_ok(outcome.above_defaults < bounds[2],
           "%s: never clearly slower than the defaults: %.2f %%", name,
           outcome.above_defaults * 100);
}

static void test_models(unsigned seed)
{
    const struct noise quiet = {.step = 0.005, .drift = 0.003, .outliers = 0.02};
    const struct noise usual = {.step = 0.02, .drift = 0.02, .outliers = 0.02};
    const struct noise wild = {.step = 0.1, .drift = 0.05, .outliers = 0.05};
    /* With much noise, the tuner often keeps the defaults, so wild_bounds allows for the
     * distance from the defaults to the best setting. */
    const double quiet_bounds[] = {0.01, 0.06, 0.003};
    const double usual_bounds[] = {0.015, 0.1, 0.01};
    const double wild_bounds[] = {0.05, 0.5, 0.05};

    for (enum model model = 0; model < MODELS; model++) {
        test_model(model, quiet, seed, quiet_bounds);
        test_model(model, usual, seed, usual_bounds);
        test_model(model, wild, seed, wild_bounds);
    }
}

/* Tests a job that writes a checkpoint after every 20th step. A checkpoint takes as long
 * as a hundred steps. */
static void test_pauses(unsigned seed)
{
    const struct noise noise = {.step = 0.005};
    struct hvd_tuner *tuner = make_tuner(&horovods);
    struct job job;
    int steps = 0;
    double best;

    job_draw(&job, MODEL_RESNET50, noise, seed);
    job.latency_us = 2000; /* so that tuning has something to gain */
    best = best_us(&job);
    while (!hvd_tuner_is_over(tuner) && steps < 1000) {
        steps += job_train(&job, tuner, 1);
        job.now_us += steps % 20 == 0 ? 100 * best : 0;
    }
    tap_ok(job_tuned_us(&job, tuner) < 1.06 * best && steps <= 500,
           "pauses between steps do not mislead the tuner: %.2f %% above the best",
           (job_tuned_us(&job, tuner) / best - 1) * 100);
    hvd_tuner_destroy(tuner);
}

static void test_fixed(unsigned seed)
{
    struct hvd_tuner_options options = horovods;
    const struct noise noise = {.step = 0.01};
    struct hvd_tuner *tuner;
    struct job job;
    bool stays = true;

    options.defaults.fusion_threshold = 12345678;
    options.has_fusion_threshold = true;
    tuner = make_tuner(&options);
    job_draw(&job, MODEL_RESNET50, noise, seed);
    while (!hvd_tuner_is_over(tuner)) {
        job_train(&job, tuner, 1);
        stays &= hvd_tuner_setting(tuner)->fusion_threshold == 12345678;
    }
    tap_ok(stays && job.settings > 0,
           "a threshold that the user has set is kept, the cycle time is tuned");
    hvd_tuner_destroy(tuner);
}

static void test_all_fixed(void)
{
    const struct hvd_tuner_options options = {
        .defaults = {.fusion_threshold = 1000, .cycle_time_ms = 3.5},
        .has_fusion_threshold = true,
        .has_cycle_time = true,
        .steps_per_sample = 10,
        .max_trials = 20};
    struct hvd_tuner *tuner = make_tuner(&options);

    tap_ok(hvd_tuner_is_over(tuner) &&
               !hvd_tuner_ended(tuner, "gradient", 4000, 1000000) &&
               hvd_tuner_setting(tuner)->fusion_threshold == 1000 &&
               hvd_tuner_setting(tuner)->cycle_time_ms == 3.5,
           "if the user has set everything, there is nothing to tune");
    hvd_tuner_destroy(tuner);
}

static void test_measures(unsigned seed)
{
    const struct hvd_tuner_options options = {
        .defaults = horovods.defaults, .steps_per_sample = 4, .max_trials = 5};
    const struct noise noise = {.step = 0.01};
    struct hvd_tuner *tuner = make_tuner(&options);
    struct job job;
    int steps;

    job_draw(&job, MODEL_BERT_BASE, noise, seed);
    steps = job_train(&job, tuner, 1000);
    /* Each sample has 4 steps. There are three rounds with a sample of each of the 5
     * trials, two rounds of the best 3, and four of the winner and the defaults; one step
     * more finds the marker, the tensor by which steps are counted. */
    tap_ok(steps <= (3 * 5 + 3 + 3 + 4 * 2) * 4 + 1,
           "fewer trials and shorter samples need fewer steps: %d", steps);
    hvd_tuner_destroy(tuner);
}

int main(void)
{
    unsigned seed = tap_seed(1);

    test_models(seed);
    test_pauses(seed);
    test_fixed(seed);
    test_all_fixed();
    test_measures(seed);
    return tap_done();
}
