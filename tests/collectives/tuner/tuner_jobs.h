/* SPDX-License-Identifier: Apache-2.0 */
/* Training jobs that take no time: how long a step would last with a given setting, with
 * the noise of real machines. */
#ifndef HVD_TUNER_JOBS_H
#define HVD_TUNER_JOBS_H

#include "collectives/tuner/tuner.h"
#include "tests/collectives/tuner/tuner_models.h"

struct noise {
    double step; /* deviation of each step's time, 0.02: 2 % */
    double drift; /* of what changes slowly, over some 50 steps */
    double outliers; /* share of steps that take 1.5 to 10 times as long */
};

struct job {
    int count;
    int64_t bytes[MODEL_TENSORS];
    double ready_us[MODEL_TENSORS]; /* since the step began */
    double backward_us;
    double other_us; /* forward, optimizer */
    double latency_us; /* of a batch */
    double agree_us;
    double bandwidth; /* bytes/us */
    double big_penalty; /* share by which bytes of batches above 16 MiB take longer */
    struct noise noise;
    uint64_t random;
    double drift_now;
    double now_us;
    int since_change; /* steps */
    int settings; /* changes that the tuner has asked for */
};

/* A model on a cluster drawn by lot: from far more computing than communication to the
 * opposite. */
void job_draw(struct job *job, enum model model, struct noise noise, unsigned seed);

/* What a step takes without noise. */
double job_step_us(const struct job *job, double threshold, double cycle_ms);

/* The same with noise; each call is the next step. The first four since_change are
 * slower. */
double job_next_us(struct job *job, double threshold, double cycle_ms);

double job_random(struct job *job); /* 0 to 1 */

/* The same with what a tuner wants now. */
double job_tuned_us(const struct job *job, const struct hvd_tuner *tuner);

/* Trains, and tells the tuner, until it is over or for so many steps. Returns the
 * steps. */
int job_train(struct job *job, struct hvd_tuner *tuner, int most_steps);

#endif
