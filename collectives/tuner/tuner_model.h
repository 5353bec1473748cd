/* SPDX-License-Identifier: Apache-2.0 */
/* A guess at the whole landscape from few noisy samples: a Gaussian process over the settings
 * of the knobs. Pure.
 *
 * Neighbouring values of an ordered knob are expected to be alike, the more so the nearer they
 * are; the ways of another knob are expected to have something in common. */
#ifndef HVD_TUNER_MODEL_H
#define HVD_TUNER_MODEL_H

#include "collectives/tuner/knob.h"
#include "gpu_binding/base/error.h"

enum {
    HVD_MODEL_KNOBS = 8,
};

/* The index of each knob's value. */
struct hvd_tuner_setting {
    int index[HVD_MODEL_KNOBS];
};

struct hvd_model;

/* knobs: [count], borrowed. most_samples: how many it can learn. The caller owns *out. */
int hvd_model_create(const struct hvd_knob *knobs, int count, int most_samples,
                     struct hvd_model **out, struct hvd_error *err);
void hvd_model_destroy(struct hvd_model *model); /* NULL is fine */

/* One sample: more is better; noise is its standard deviation, above 0. */
void hvd_model_add(struct hvd_model *model, const struct hvd_tuner_setting *setting,
                   double gain, double noise);

/* Learns from the samples so far, at least one; predict uses what the last fit has learned. */
void hvd_model_fit(struct hvd_model *model);

/* What to expect of a setting, and how far that may be off (a standard deviation). */
void hvd_model_predict(const struct hvd_model *model,
                       const struct hvd_tuner_setting *setting, double *mean,
                       double *deviation);

/* By how much a setting is expected to be better than best, on average, counting the cases in
 * which it is worse as 0. */
double hvd_expected_improvement(double mean, double deviation, double best);

#endif
