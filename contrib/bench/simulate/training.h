/* SPDX-License-Identifier: Apache-2.0 */
/* A training step: gradients become ready, are fused and summed over all ranks while the
 * backward pass goes on; the next step begins when the last sum is there. */
#ifndef HVD_SIMULATE_TRAINING_H
#define HVD_SIMULATE_TRAINING_H

#include "contrib/bench/simulate/machine.h"

struct simulate_training {
    double alone; /* seconds of a step on one GPU */
    double compute; /* of the slowest rank */
    double step; /* of the job */
    double exposed; /* step - compute: communication that is not hidden */
    double busy; /* seconds in which the network had a batch */
    int batches;
    double efficiency; /* alone / step */
};

/* Predicts a step of options->model. */
int simulate_training(const struct simulate_options *options,
                      struct simulate_training *training, struct hvd_error *err);

#endif
