/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated training jobs, which take no time (tuner_jobs.h). */
#include "tests/collectives/tuner/tuner_jobs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double mebibyte = 1024 * 1024;

double job_random(struct job *job)
{
    job->random = job->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(job->random >> 11) / 9007199254740992.0;
}

static double between(struct job *job, double least, double most)
{
    return least + (most - least) * job_random(job);
}

/* Returns 10 to the power of a random number between least and most. */
static double power(struct job *job, double least, double most)
{
    return pow(10, between(job, least, most));
}

static double normal(struct job *job)
{
    double sum = 0;

    for (int i = 0; i < 12; i++) {
        sum += job_random(job);
    }
    return sum - 6;
}

/* Draws when the backward pass has each tensor ready. The time for a tensor grows with
 * its size, but more slowly. */
static void draw_backward(struct job *job)
{
    double total = 0;

    for (int i = 0; i < job->count; i++) {
        total += sqrt((double)job->bytes[i]) * between(job, 0.5, 1.5);
        job->ready_us[i] = total;
    }
    for (int i = 0; i < job->count; i++) {
        job->ready_us[i] *= job->backward_us / total;
    }
}

void job_draw(struct job *job, enum model model, struct noise noise, unsigned seed)
{
    double total = 0;

    memset(job, 0, sizeof(*job));
    job->random = seed;
    job->noise = noise;
    job_random(job);
    job->count = model_gradients(model, job->bytes);
    for (int i = 0; i < job->count; i++) {
        job->bytes[i] *= 4;
        total += (double)job->bytes[i];
    }
    job->backward_us = power(job, 3.7, 5.7);
    job->other_us = job->backward_us * between(job, 0.3, 1);
    job->bandwidth = total / (job->backward_us * power(job, -1, 0.5));
    job->latency_us = power(job, 1.3, 3.5);
    job->agree_us = power(job, 1.3, 3);
    job->big_penalty = job_random(job) < 0.5 ? 0 : between(job, 0, 0.5);
    draw_backward(job);
}

/* Sends tensors [begin, end) as batches, one after the other, from free_us on. Returns
 * when the last batch has arrived. */
static double send(const struct job *job, int begin, int end, double threshold,
                   double free_us)
{
    double batch = 0;

    for (int i = begin; i < end; i++) {
        double bytes = (double)job->bytes[i];
        double more = i + 1 < end ? (double)job->bytes[i + 1] : 0;
        bool is_full = i + 1 == end || batch + bytes + more > threshold;

        batch += bytes;
        if (is_full) {
            double slower = batch > 16 * mebibyte ? 1 + job->big_penalty : 1;

            free_us += job->latency_us + batch / job->bandwidth * slower;
            batch = 0;
        }
    }
    return free_us;
}

double job_step_us(const struct job *job, double threshold, double cycle_ms)
{
    double free_us = 0; /* when the network becomes free */
    double bytes = 0;
    int begin = 0;

    for (int i = 0; i < job->count; i++) {
        double deadline = job->ready_us[begin] + cycle_ms * 1000;
        bool waits = i + 1 < job->count && job->ready_us[i + 1] < deadline;
        double now = i + 1 < job->count ? deadline : fmax(deadline, job->ready_us[i]);

        bytes += (double)job->bytes[i];
        if (bytes >= threshold) {
            now = job->ready_us[i];
            waits = false;
        }
        if (!waits) {
            free_us =
                send(job, begin, i + 1, threshold, fmax(free_us, now + job->agree_us));
            begin = i + 1;
            bytes = 0;
        }
    }
    return fmax(free_us, job->backward_us) + job->other_us;
}

double job_next_us(struct job *job, double threshold, double cycle_ms)
{
    const double memory = 0.98;
    double us = job_step_us(job, threshold, cycle_ms);

    job->drift_now = memory * job->drift_now +
                     sqrt(1 - memory * memory) * job->noise.drift * normal(job);
    us *= exp(job->drift_now + job->noise.step * normal(job));
    if (job->since_change < 4) {
        us *= between(job, 1, 1.5);
    }
    if (job_random(job) < job->noise.outliers) {
        us *= between(job, 1.5, 10);
    }
    return us;
}

double job_tuned_us(const struct job *job, const struct hvd_tuner *tuner)
{
    return job_step_us(job, (double)hvd_tuner_setting(tuner)->fusion_threshold,
                       hvd_tuner_setting(tuner)->cycle_time_ms);
}

static void end_tensors(struct job *job, struct hvd_tuner *tuner)
{
    job->since_change++;
    for (int i = 0; i < job->count; i++) {
        char name[24];

        snprintf(name, sizeof(name), "gradient%d", i);
        if (hvd_tuner_ended(tuner, name, job->bytes[i], (int64_t)job->now_us)) {
            job->since_change = 0;
            job->settings++;
        }
    }
}

int job_train(struct job *job, struct hvd_tuner *tuner, int most_steps)
{
    int steps = 0;

    while (steps < most_steps && !hvd_tuner_is_over(tuner)) {
        job->now_us +=
            job_next_us(job, (double)hvd_tuner_setting(tuner)->fusion_threshold,
                        hvd_tuner_setting(tuner)->cycle_time_ms);
        steps++;
        end_tensors(job, tuner);
    }
    return steps;
}
