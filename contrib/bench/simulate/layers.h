/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of models, in the order of the forward pass: tensors and multiplications. */
#ifndef HVD_SIMULATE_LAYERS_H
#define HVD_SIMULATE_LAYERS_H

#include <stddef.h>
#include <stdint.h>

struct simulate_layer {
    int64_t elements[3]; /* of its tensors; 0: has no more */
    double multiplications;
};

/* Zeroed is empty. */
struct simulate_layers {
    struct simulate_layer *all; /* [count] */
    size_t count;
    size_t capacity;
};

void simulate_layers_resnet50(struct simulate_layers *layers);
void simulate_layers_resnet101(struct simulate_layers *layers);
void simulate_layers_inception3(struct simulate_layers *layers);
void simulate_layers_vgg16(struct simulate_layers *layers);
void simulate_layers_bert(struct simulate_layers *layers);

#endif
