/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of well-known models: the sizes of their tensors. */
#ifndef HVD_TUNER_MODELS_H
#define HVD_TUNER_MODELS_H

#include <stdint.h>

enum model {
    MODEL_RESNET50,
    MODEL_VGG16,
    MODEL_BERT_BASE,
    MODELS
};

enum {
    MODEL_TENSORS = 200,
};

const char *model_name(enum model model);

/* Fills in the number of elements of each tensor, in the order in which a backward pass
 * has them ready. Returns the number of tensors. elements: [MODEL_TENSORS] */
int model_gradients(enum model model, int64_t *elements);

#endif
