/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated training jobs, which take no time: they compute how long a step would last
 * with a given setting, with the noise of real machines. */
#ifndef HVD_TUNER_JOBS_H
#define HVD_TUNER_JOBS_H

#include "collectives/tuner/tuner.h"
#include "tests/collectives/tuner/tuner_models.h"

struct noise {
    double step; /* relative deviation of the time of a step */
    double drift; /* deviation of a slow drift over about 50 steps */
    double outliers; /* share of steps that take 1.5 to 10 times as long */
};

struct job {
    int count;
    int64_t bytes[MODEL_TENSORS];
    /* when the backward pass has each tensor ready, since the step began */
    double ready_us[MODEL_TENSORS];
    double backward_us;
    double other_us; /* forward pass and optimizer */
    double latency_us; /* time of a batch besides that for its bytes */
    double agree_us;
    double bandwidth; /* bytes/us */
    double big_penalty; /* share by which batches above 16 MiB take longer */
    struct noise noise;
    uint64_t random;
    double drift_now;
    double now_us;
    int since_change; /* steps since the last change of the setting */
    int settings; /* changes that the tuner has asked for */
};

/* Draws a random cluster for a model. Some of these jobs compute for much longer than
 * they communicate, others for much shorter. */
void job_draw(struct job *job, enum model model, struct noise noise, unsigned seed);

/* Returns the time of a step without noise. */
double job_step_us(const struct job *job, double threshold, double cycle_ms);

/* Returns the time of the next step, with noise. The first four steps after a change of
 * the setting are slower. */
double job_next_us(struct job *job, double threshold, double cycle_ms);

double job_random(struct job *job); /* between 0 and 1 */

/* Returns the time of a step without noise, with the tuner's current setting. */
double job_tuned_us(const struct job *job, const struct hvd_tuner *tuner);

/* Trains and reports the steps to the tuner, until tuning is over, but for most_steps
 * steps at most. Returns the number of steps. */
int job_train(struct job *job, struct hvd_tuner *tuner, int most_steps);

#endif
