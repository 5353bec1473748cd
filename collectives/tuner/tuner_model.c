/* SPDX-License-Identifier: Apache-2.0 */
/* A guess at the whole landscape from few noisy samples: a Gaussian process. */
#include "collectives/tuner/tuner_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/tuner/median.h"

/* Over so many candidate values of a knob the landscape changes. */
static const double values_alike = 2;

/* As far apart as this many values are two ways of an unordered knob. */
static const double ways_apart = 3;

/* The landscape varies at least by this (2 %); without it a first few equal samples would
 * leave nothing to look for. */
static const double least_variation = 0.02;

/* Samples count as no worse than this (half the speed): how bad the bad ones are tells nothing
 * about the good ones. */
static const double worst_gain = -0.7;

struct hvd_model {
    const struct hvd_knob *knobs;
    int knob_count;
    int most;
    int count;
    struct hvd_tuner_setting *settings; /* [most] */
    double *gains; /* [most] */
    double *noises; /* [most] */
    double mean; /* of the landscape, where nothing is known */
    double variance;
    double *lower; /* [most * most] Cholesky factor of the samples' covariance */
    double *weights; /* [most] */
    double *scratch; /* [most] */
};

int hvd_model_create(const struct hvd_knob *knobs, int count, int most_samples,
                     struct hvd_model **out, struct hvd_error *err)
{
    struct hvd_model *model = calloc(1, sizeof(*model));
    size_t most = (size_t)most_samples;

    if (model != NULL) {
        model->knobs = knobs;
        model->knob_count = count;
        model->most = most_samples;
        model->settings = calloc(most, sizeof(model->settings[0]));
        model->gains = calloc(most, sizeof(double));
        model->noises = calloc(most, sizeof(double));
        model->lower = calloc(most * most, sizeof(double));
        model->weights = calloc(most, sizeof(double));
        model->scratch = calloc(most, sizeof(double));
    }
    if (model == NULL || model->settings == NULL || model->gains == NULL ||
        model->noises == NULL || model->lower == NULL || model->weights == NULL ||
        model->scratch == NULL) {
        hvd_model_destroy(model);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the autotuner");
    }
    *out = model;
    return 0;
}

void hvd_model_destroy(struct hvd_model *model)
{
    if (model == NULL) {
        return;
    }
    free(model->settings);
    free(model->gains);
    free(model->noises);
    free(model->lower);
    free(model->weights);
    free(model->scratch);
    free(model);
}

void hvd_model_add(struct hvd_model *model, const struct hvd_tuner_setting *setting,
                   double gain, double noise)
{
    if (model->count < model->most) {
        model->settings[model->count] = *setting;
        model->gains[model->count] = fmax(gain, worst_gain);
        model->noises[model->count] = noise;
        model->count++;
    }
}

/* How much two settings have in common, 0 to 1: a Matern function, for a landscape that is
 * smooth but has bends. */
static double likeness(const struct hvd_model *model, const struct hvd_tuner_setting *a,
                       const struct hvd_tuner_setting *b)
{
    double squares = 0, distance;

    for (int i = 0; i < model->knob_count; i++) {
        double apart = abs(a->index[i] - b->index[i]);

        if (!model->knobs[i].is_ordered && apart > 0) {
            apart = ways_apart;
        }
        squares += apart * apart;
    }
    distance = sqrt(5 * squares) / values_alike;
    return (1 + distance + distance * distance / 3) * exp(-distance);
}

/* Of the landscape: where most samples are, and how far they scatter. */
static void fit_scale(struct hvd_model *model)
{
    double sum = 0, squares = 0, variance;
    int count = model->count;

    for (int i = 0; i < count; i++) {
        sum += model->gains[i];
        squares += model->gains[i] * model->gains[i];
    }
    variance = squares / count - sum / count * (sum / count);
    model->variance = fmax(variance, least_variation * least_variation);
    memcpy(model->scratch, model->gains, (size_t)count * sizeof(double));
    model->mean = hvd_median(model->scratch, count);
}

static double *lower_row(const struct hvd_model *model, int row)
{
    return model->lower + (size_t)row * (size_t)model->most;
}

/* Solves lower * x = x in place. */
static void solve_down(const struct hvd_model *model, double *x)
{
    for (int i = 0; i < model->count; i++) {
        const double *row = lower_row(model, i);

        for (int k = 0; k < i; k++) {
            x[i] -= row[k] * x[k];
        }
        x[i] /= row[i];
    }
}

/* Solves transposed lower * x = x in place. */
static void solve_up(const struct hvd_model *model, double *x)
{
    for (int i = model->count - 1; i >= 0; i--) {
        for (int k = i + 1; k < model->count; k++) {
            x[i] -= lower_row(model, k)[i] * x[k];
        }
        x[i] /= lower_row(model, i)[i];
    }
}

/* The noise on the diagonal keeps what is under the root above 0. */
static void factorise(struct hvd_model *model)
{
    for (int i = 0; i < model->count; i++) {
        double *row = lower_row(model, i);

        for (int j = 0; j <= i; j++) {
            const double *other = lower_row(model, j);
            double sum = model->variance *
                         likeness(model, &model->settings[i], &model->settings[j]);

            sum += i == j ? model->noises[i] * model->noises[i] : 0;
            for (int k = 0; k < j; k++) {
                sum -= row[k] * other[k];
            }
            row[j] = i == j ? sqrt(fmax(sum, 1e-12)) : sum / other[j];
        }
    }
}

void hvd_model_fit(struct hvd_model *model)
{
    fit_scale(model);
    factorise(model);
    for (int i = 0; i < model->count; i++) {
        model->weights[i] = model->gains[i] - model->mean;
    }
    solve_down(model, model->weights);
    solve_up(model, model->weights);
}

void hvd_model_predict(const struct hvd_model *model,
                       const struct hvd_tuner_setting *setting, double *mean,
                       double *deviation)
{
    double *common = model->scratch;
    double expected = model->mean;
    double left = model->variance;

    for (int i = 0; i < model->count; i++) {
        common[i] = model->variance * likeness(model, setting, &model->settings[i]);
        expected += common[i] * model->weights[i];
    }
    solve_down(model, common);
    for (int i = 0; i < model->count; i++) {
        left -= common[i] * common[i];
    }
    *mean = expected;
    *deviation = sqrt(fmax(left, 1e-12));
}

double hvd_expected_improvement(double mean, double deviation, double best)
{
    const double pi = 3.14159265358979323846;
    double lead = mean - best;
    double z = lead / deviation;

    return lead * 0.5 * erfc(-z / sqrt(2)) + deviation * exp(-z * z / 2) / sqrt(2 * pi);
}
