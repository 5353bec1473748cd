/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of well-known models, in the order in which the backward pass computes
 * them, and the time of each.
 *
 * A layer takes a share of the backward pass that is proportional to its multiplications;
 * its gradients are ready when the layer ends. Layers with many bytes and few
 * multiplications (batch norm, embeddings) take no time here. */
#ifndef HVD_SIMULATE_MODELS_H
#define HVD_SIMULATE_MODELS_H

#include <stdint.h>

#include "gpu_binding/base/error.h"

enum {
    SIMULATE_MOST_TENSORS = 512
};

struct simulate_tensor {
    int64_t elements;
    /* when the gradient is ready, as a share of the backward pass, 0 to 1 */
    double ready;
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
