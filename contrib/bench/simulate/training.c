/* SPDX-License-Identifier: Apache-2.0 */
/* Computes when gradients are ready and how they are fused. */
#include "contrib/bench/simulate/training.h"

#include <math.h>

#include "contrib/bench/simulate/collective.h"
#include "contrib/bench/simulate/models.h"

/* The backward pass multiplies twice as often as the forward pass: with each weight once
 * for the gradient of the input and once for that of the weight. */
static const double backward_share = 2.0 / 3;

/* Returns by how many standard deviations the largest of n normal values is expected to
 * be above the mean: the quantile at (n - 0.375) / (n + 0.25) (Blom). */
static double slowest_of(double n)
{
    double below = (n - 0.375) / (n + 0.25);
    double low = 0, high = 40;

    if (n < 2) {
        return 0;
    }
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;

        if (1 - erfc(middle / sqrt(2)) / 2 < below) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Returns the end of the next batch: the tensors from `first` on that are ready at `now`,
 * up to the fusion threshold, but at least one. */
static int fuse(const struct simulate_options *options,
                const struct simulate_model *model, const double *ready, int first,
                double now, double *bytes)
{
    int end = first;

    *bytes = 0;
    while (end < model->count && ready[end] <= now) {
        double more = (double)model->tensors[end].elements * sizeof(float);

        if (end > first && *bytes + more > options->fusion) {
            break;
        }
        *bytes += more;
        end++;
    }
    return end;
}

/* Runs the batches one after the other. Each takes the tensors that are ready when the
 * batch before has ended. */
static int run_batches(const struct simulate_options *options,
                       const struct simulate_model *model,
                       struct simulate_training *training, struct hvd_error *err)
{
    double begin = training->compute * (1 - backward_share), now = 0, bytes;
    double ready[SIMULATE_MOST_TENSORS];

    for (int i = 0; i < model->count; i++) {
        ready[i] = begin + training->compute * backward_share * model->tensors[i].ready;
    }
    for (int next = 0; next < model->count;) {
        struct simulate_result result;
        int status;

        now = fmax(now, ready[next]);
        next = fuse(options, model, ready, next, now, &bytes);
        status = simulate_allreduce(&options->machine, bytes, false, &result, err);
        if (status < 0) {
            return status;
        }
        now += result.seconds;
        training->busy += result.seconds;
        training->batches++;
    }
    training->step = fmax(now, training->compute);
    return 0;
}

int simulate_training(const struct simulate_options *options,
                      struct simulate_training *training, struct hvd_error *err)
{
    double ranks = (double)options->machine.nodes * options->machine.gpus;
    struct simulate_model model;
    int status = simulate_model_find(options->model, &model, err);

    *training = (struct simulate_training){0};
    if (status == 0) {
        training->alone =
            options->compute > 0 ? options->compute : options->batch / model.samples_s;
        training->compute = training->alone * (1 + options->jitter * slowest_of(ranks));
        status = run_batches(options, &model, training, err);
    }
    if (status == 0) {
        training->exposed = training->step - training->compute;
        training->efficiency = training->alone / training->step;
    }
    return status;
}
