/* SPDX-License-Identifier: Apache-2.0 */
/* A training step: gradients become ready, are fused and summed over all ranks while the backward
 * pass goes on; the next step begins when the last sum is there. */
#ifndef HVD_SIMULATE_TRAINING_H
#define HVD_SIMULATE_TRAINING_H

#include "contrib/bench/simulate/machine.h"
#include "contrib/bench/simulate/models.h"

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

/* When all gradients of a step are summed, in seconds after its beginning. Ready times go up. */
struct simulate_gradients {
    const struct simulate_model *model;
    double begin; /* of the backward pass */
    double backward; /* its seconds */
};
int simulate_step_hvd(const struct simulate_options *options,
                      const struct simulate_gradients *gradients,
                      struct simulate_training *training, struct hvd_error *err);
int simulate_step_horovod(const struct simulate_options *options,
                          const struct simulate_gradients *gradients,
                          struct simulate_training *training, struct hvd_error *err);

/* One allreduce of Horovod: NCCL's flat ring. */
double simulate_ring(const struct simulate_options *options, double bytes);

#endif
