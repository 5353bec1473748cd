/* SPDX-License-Identifier: Apache-2.0 */
/* A step of hvd: the real agreement of a job of one rank decides what travels together, with a clock
 * of ours. After some steps it has a replay, as in any job, and no rank asks any more: from then on
 * one rank's decisions are those of all. Batches run one after the other, as simulated. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/agreement.h"
#include "collectives/agreement/tensor_table.h"
#include "contrib/bench/simulate/collective.h"
#include "contrib/bench/simulate/training.h"

enum {
    MOST_STEPS = 40, /* a replay takes fewer */
    REPLAYED_STEPS = 3, /* the last of them counts */
};

static const double nothing = 1e300;
static const double most_seconds = 1e8; /* the agreement counts nanoseconds in 64 bits */

/* What an allreduce of a size takes is asked again in each step. */
struct known_time {
    double bytes;
    double seconds;
};

struct job {
    const struct simulate_options *options;
    struct hvd_agreement *agreement;
    struct hvd_tensor_table tensors;
    struct hvd_layout layout; /* of the one rank */
    struct hvd_batch **batches; /* [batch_count], those from batch_first on wait or run */
    int batch_first;
    int batch_count;
    struct hvd_request **requests; /* [tensors] of this step or the last */
    int pending; /* tensors that are submitted and not summed */
    double ends; /* of the batch that runs; `nothing`: none does */
    double busy;
    struct known_time *times; /* [time_count] */
    int time_count;
    int status;
    struct hvd_error *err;
};

static int64_t in_ns(double seconds)
{
    return (int64_t)(seconds * 1e9 + 0.5);
}

/* --- what the agreement does --- */

static int nobody(void *context, const void *payload, size_t bytes)
{
    (void)context, (void)payload, (void)bytes;
    return 0;
}

static int no_child(void *context, int child, const void *payload, size_t bytes)
{
    (void)child;
    return nobody(context, payload, bytes);
}

static void run(void *context, struct hvd_batch *batch)
{
    struct job *job = context;

    job->batches[job->batch_count++] = batch;
}

static void pause_set(void *context, int set, bool is_paused)
{
    (void)context, (void)set, (void)is_paused;
}

static void make_void(void *context, struct hvd_batch *batch)
{
    (void)context, (void)batch;
}

static void end_entry(void *context, struct hvd_entry *entry, int status,
                      const char *text)
{
    struct job *job = context;

    job->pending--;
    hvd_entry_end(entry, status, text);
}

static const char *host(void *context, int rank)
{
    (void)context, (void)rank;
    return "one";
}

static void give_up(void *context, int silent, const char *text)
{
    (void)context, (void)silent, (void)text;
}

static const struct hvd_agreement_ops ops = {
    .send_up = nobody,
    .send_down = no_child,
    .run = run,
    .pause = pause_set,
    .make_void = make_void,
    .host = host,
    .give_up = give_up,
};

/* --- batches --- */

static double batch_seconds(struct job *job, double bytes)
{
    struct simulate_result result = {0};

    for (int i = 0; i < job->time_count; i++) {
        if (job->times[i].bytes == bytes) {
            return job->times[i].seconds;
        }
    }
    job->status = simulate_allreduce(&job->options->machine, bytes,
                                     job->options->whole != 0, &result, job->err);
    job->times[job->time_count++] = (struct known_time){bytes, result.seconds};
    return result.seconds;
}

static void start_batch(struct job *job, double now)
{
    double bytes = 0, seconds;
    const struct hvd_batch *batch;

    if (job->ends < nothing || job->batch_first == job->batch_count) {
        return;
    }
    batch = job->batches[job->batch_first];
    for (int64_t i = 0; i < batch->header.count; i++) {
        bytes += (double)hvd_entry_count(batch->entries[i]) * sizeof(float);
    }
    seconds = batch_seconds(job, bytes);
    job->busy += seconds;
    job->ends = now + seconds;
}

static int end_batch(struct job *job)
{
    struct hvd_batch *batch = job->batches[job->batch_first++];

    job->ends = nothing;
    return hvd_agreement_finish(job->agreement, batch);
}

/* --- tensors --- */

static int submit(struct job *job, const struct simulate_model *model, int index,
                  double now)
{
    struct hvd_request *request = hvd_request_create(1);
    struct hvd_entry *entry;
    char name[24];
    int status;

    if (request == NULL) {
        return HVD_ERR_NOMEM;
    }
    hvd_request_destroy(job->requests[index]);
    job->requests[index] = request;
    job->pending++;
    snprintf(name, sizeof(name), "gradient.%d", index);
    entry = &request->entries[0];
    entry->proposal = (struct hvd_proposal){.kind = HVD_KIND_ALLREDUCE,
                                            .name = strdup(name),
                                            .dtype = HVD_FLOAT32,
                                            .op = HVD_SUM,
                                            .ndim = 1,
                                            .shape = {model->tensors[index].elements},
                                            .device = HVD_DEVICE_CPU,
                                            .prescale = 1,
                                            .postscale = 1};
    status = hvd_tensor_table_add(&job->tensors, request, job->err);
    return status != 0 ? status : hvd_agreement_submit(job->agreement, entry, in_ns(now));
}

/* --- steps --- */

struct step {
    const struct simulate_gradients *gradients;
    double begin;
    int next; /* tensor to be submitted */
    bool is_waited; /* the backward pass is over: somebody waits */
};

static double next_tensor(const struct step *step)
{
    const struct simulate_model *model = step->gradients->model;

    return step->next < model->count
               ? step->begin + step->gradients->begin +
                     step->gradients->backward * model->tensors[step->next].ready
               : nothing;
}

static int progress(struct job *job, const struct step *step, double now)
{
    bool moved = true;
    int status = 0;

    while (moved && status == 0) {
        moved = false;
        status =
            hvd_agreement_progress(job->agreement, step->is_waited, in_ns(now), &moved);
    }
    start_batch(job, now);
    return status != 0 ? status : job->status;
}

static double next_deadline(const struct job *job, const struct step *step, double now)
{
    int64_t ns = hvd_agreement_deadline(job->agreement, step->is_waited, in_ns(now));

    return ns < 0 ? nothing : (double)ns * 1e-9;
}

static double soonest(double a, double b)
{
    return a < b ? a : b;
}

/* Until all gradients of the step are summed; *now goes from its beginning to its end. */
static int run_step(struct job *job, struct step *step, double *now)
{
    int status = 0;

    while (status == 0 &&
           (step->next < step->gradients->model->count || job->pending > 0)) {
        double deadline = next_deadline(job, step, *now);

        deadline = deadline > *now ? deadline : *now + 1e-6;
        *now = soonest(soonest(next_tensor(step), job->ends), deadline);
        if (*now > most_seconds) {
            return hvd_fail(job->err, HVD_ERR_ARG,
                            "the steps of this machine take more than %.0e seconds",
                            most_seconds);
        }
        while (next_tensor(step) <= *now && status == 0) {
            status = submit(job, step->gradients->model, step->next++, *now);
        }
        step->is_waited = step->next == step->gradients->model->count;
        if (job->ends <= *now && status == 0) {
            status = end_batch(job);
        }
        status = status != 0 ? status : progress(job, step, *now);
    }
    return status;
}

static int run_steps(struct job *job, const struct simulate_gradients *gradients,
                     struct simulate_training *training)
{
    double now = 1;
    int replayed = 0;
    int status = 0;

    for (int i = 0; i < MOST_STEPS && replayed < REPLAYED_STEPS && status == 0; i++) {
        struct step step = {.gradients = gradients, .begin = now};
        struct hvd_agreement_counts counts;

        job->busy = 0;
        job->batch_first = job->batch_count = 0;
        status = run_step(job, &step, &now);
        hvd_agreement_count(job->agreement, &counts);
        replayed += counts.replays > 0 ? 1 : 0;
        training->step = now - step.begin;
        training->busy = job->busy;
        training->batches = job->batch_count;
    }
    return status;
}

/* --- life --- */

static int open_job(struct job *job, int tensors, struct hvd_error *err)
{
    const char *host = "one";
    struct hvd_agreement_settings settings = {
        .tensors = &job->tensors,
        .fusion = {.threshold = (int64_t)job->options->fusion,
                   .capacity = 1024,
                   .cycle_ns = in_ns(job->options->cycle)},
        .may_replay = true,
    };
    int status = hvd_layout_init(&job->layout, &host, 1, err);

    job->requests = calloc((size_t)tensors, sizeof(struct hvd_request *));
    job->batches = calloc((size_t)tensors, sizeof(struct hvd_batch *));
    job->times = calloc((size_t)tensors * MOST_STEPS, sizeof(job->times[0]));
    if (job->requests == NULL || job->batches == NULL || job->times == NULL) {
        return HVD_ERR_NOMEM;
    }
    return status != 0 ? status
                       : hvd_agreement_create(&job->layout, 0, &settings, &ops, job,
                                              &job->agreement, err);
}

static void close_job(struct job *job, int tensors)
{
    hvd_agreement_destroy(job->agreement);
    hvd_tensor_table_finish(&job->tensors);
    for (int i = 0; job->requests != NULL && i < tensors; i++) {
        hvd_request_destroy(job->requests[i]);
    }
    free(job->requests);
    free(job->batches);
    free(job->times);
    hvd_layout_finish(&job->layout);
}

int simulate_step_hvd(const struct simulate_options *options,
                      const struct simulate_gradients *gradients,
                      struct simulate_training *training, struct hvd_error *err)
{
    struct job job = {.options = options, .ends = nothing, .err = err};
    int tensors = gradients->model->count;
    int status;

    hvd_tensor_table_init(&job.tensors, end_entry, &job);
    status = open_job(&job, tensors, err);
    status = status != 0 ? status : run_steps(&job, gradients, training);
    close_job(&job, tensors);
    return status;
}
