/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of well-known models in the order in which the backward pass makes them, and when.
 *
 * A layer takes a share of the backward time that is its share of the multiplications; its
 * gradients are ready at its end. That is no measurement: layers with many bytes and few
 * multiplications (batch norm, embeddings) take no time here. */
#ifndef HVD_SIMULATE_MODELS_H
#define HVD_SIMULATE_MODELS_H

#include <stdint.h>

#include "gpu_binding/base/error.h"

struct simulate_tensor {
    int64_t elements;
    double ready; /* share of the backward time that has passed, 0 ... 1 */
};

struct simulate_model {
    const char *name;
    const char *title;
    double p100; /* samples per second of one GPU in float32, published */
    double v100;
    struct simulate_tensor *tensors; /* [count], first ready first */
    int count;
    double multiplications; /* of the forward pass of one sample */
};

/* resnet50, resnet101, inception3, vgg16, bert. Returns 0, HVD_ERR_ARG or HVD_ERR_NOMEM; the
 * caller ends it with finish, also after a failure. */
int simulate_model_init(struct simulate_model *model, const char *name,
                        struct hvd_error *err);
void simulate_model_finish(struct simulate_model *model);

int64_t simulate_model_elements(const struct simulate_model *model);

#endif
