/* SPDX-License-Identifier: Apache-2.0 */
/* Compute times: published, given, and those of the slowest of many. */
#include "contrib/bench/simulate/training.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Backward multiplies twice as often as forward: with each weight for the gradient of the input and
 * for that of the weight. */
static const double backward_share = 2.0 / 3;

/* How far the largest of n normal values is above their mean, in standard deviations: the
 * quantile at (n - 0.375) / (n + 0.25) (Blom). */
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

static double time_alone(const struct simulate_options *options,
                         const struct simulate_model *model)
{
    bool is_p100 = strcmp(options->device, "p100") == 0;

    return options->compute > 0 ? options->compute
                                : options->batch / (is_p100 ? model->p100 : model->v100);
}

int simulate_training(const struct simulate_options *options,
                      struct simulate_training *training, struct hvd_error *err)
{
    double ranks = (double)options->machine.nodes * options->machine.gpus;
    struct simulate_gradients gradients;
    struct simulate_model model;
    int status = simulate_model_init(&model, options->model, err);

    *training = (struct simulate_training){0};
    if (status == 0) {
        training->alone = time_alone(options, &model);
        training->compute = training->alone * (1 + options->jitter * slowest_of(ranks));
        gradients = (struct simulate_gradients){
            .model = &model,
            .begin = training->compute * (1 - backward_share),
            .backward = training->compute * backward_share,
        };
        status = options->schedule == SIMULATE_HVD
                     ? simulate_step_hvd(options, &gradients, training, err)
                     : simulate_step_horovod(options, &gradients, training, err);
    }
    if (status == 0) {
        training->step = fmax(training->step, training->compute);
        training->exposed = training->step - training->compute;
        training->efficiency = training->alone / training->step;
    }
    simulate_model_finish(&model);
    return status;
}
