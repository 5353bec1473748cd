/* SPDX-License-Identifier: Apache-2.0 */
/* The autotuner: watches how fast training goes and finds the setting of the knobs (knob.h) with
 * which it goes fastest. Rank 0 owns one. No clock and no network: time is passed in.
 *
 * A step is from one end to the next of the marker, the largest tensor of a training step (so
 * that metrics, averaged now and then, count for nothing). A sample is steps_per_sample steps
 * with one setting; the first four in ten, in which ranks get used to it, do not count. Its
 * score is the median over the others of bytes / us: a checkpoint or an evaluation in between
 * does not matter. A sample that is far worse than the defaults ends early. tuner_search.h
 * says which settings are tried.
 *
 * With Horovod's numbers below, tuning is over within 500 steps. Any thread, one at a time. */
#ifndef HVD_TUNER_H
#define HVD_TUNER_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/tuner/knob.h"
#include "gpu_binding/base/error.h"

/* HOROVOD_AUTOTUNE_*; GAUSSIAN_PROCESS_NOISE has no meaning here: the noise is measured. */
struct hvd_tuner_options {
    int warmup_samples; /* with the defaults, before the first that counts (3) */
    int steps_per_sample; /* (10) */
    int max_trials; /* settings that are tried, BAYES_OPT_MAX_SAMPLES (20) */
    const char *log; /* a file, see tuner_log.h; NULL: none */
};

struct hvd_tuner;

/* knobs: [count], copied but for the names. A log that cannot be written gets a warning. The
 * caller owns *out. */
int hvd_tuner_create(const struct hvd_knob *knobs, int count,
                     const struct hvd_tuner_options *options, struct hvd_tuner **out,
                     struct hvd_error *err);
void hvd_tuner_destroy(struct hvd_tuner *tuner); /* NULL is fine */

/* An allreduce of all ranks has ended here. name: of the tensor, the same in each step (the
 * largest tensor's is copied). Returns true when the values below are others from now on. */
bool hvd_tuner_ended(struct hvd_tuner *tuner, const char *name, int64_t bytes,
                     int64_t now_us);

/* What all ranks should use now. */
double hvd_tuner_value(const struct hvd_tuner *tuner, int knob);

/* The values are final; more steps change nothing. */
bool hvd_tuner_is_over(const struct hvd_tuner *tuner);

#endif
