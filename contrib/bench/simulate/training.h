/* SPDX-License-Identifier: Apache-2.0 */
/* A training step: gradients become ready, are fused and summed over all ranks while the
 * backward pass continues; the next step begins when the last sum has arrived. */
#ifndef HVD_SIMULATE_TRAINING_H
#define HVD_SIMULATE_TRAINING_H

#include "contrib/bench/simulate/machine.h"

struct simulate_training {
    double alone; /* seconds of a step on one GPU */
    double compute; /* seconds of computation on the slowest rank */
    double step; /* seconds of a step of the job */
    double exposed; /* step - compute: communication that is not hidden */
    double busy; /* seconds in which the network carried a batch */
    int batches;
    double efficiency; /* alone / step */
};

/* Predicts a step of options->model. */
int simulate_training(const struct simulate_options *options,
                      struct simulate_training *training, struct hvd_error *err);

#endif
