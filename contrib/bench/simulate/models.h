/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of well-known models, in the order in which the backward pass computes
 * them, and the time of each.
 *
 * A layer takes the share of the backward pass that it has of the multiplications; its
 * gradients are ready at its end. Layers with many bytes and few multiplications (batch
 * norm, embeddings) take no time here. */
#ifndef HVD_SIMULATE_MODELS_H
#define HVD_SIMULATE_MODELS_H

#include <stdint.h>

#include "gpu_binding/base/error.h"

enum {
    SIMULATE_MOST_TENSORS = 512
};

struct simulate_tensor {
    int64_t elements;
    double ready; /* share of the backward pass that is over, 0 to 1 */
};

struct simulate_model {
    double samples_s; /* samples per second of one P100 in float32 */
    int count;
    /* in the order in which they are ready */
    struct simulate_tensor tensors[SIMULATE_MOST_TENSORS];
};

/* Finds resnet50, resnet101, vgg16 or bert. Returns 0 or HVD_ERR_ARG. */
int simulate_model_find(const char *name, struct simulate_model *model,
                        struct hvd_error *err);

#endif
