/* SPDX-License-Identifier: Apache-2.0 */
/* How many elements each gradient of well-known models has. Pure.
 *
 *   resnet50     161 tensors,  25,557,032 elements     as torchvision defines them
 *   resnet101    314 tensors,  44,549,160 elements     likewise
 *   inception3   284 tensors,  23,834,568 elements     likewise, without the second classifier
 *   vgg16         32 tensors, 138,357,544 elements     likewise
 *   bert_base    199 tensors, 109,482,240 elements     with the pooler */
#ifndef HVD_BENCH_GRADIENT_LIST_H
#define HVD_BENCH_GRADIENT_LIST_H

#include <stdint.h>

enum {
    BENCH_MOST_TENSORS = 512
};

struct bench_gradients {
    int count;
    int64_t elements[BENCH_MOST_TENSORS]; /* in the order of the forward pass */
};

/* The names, one after the other, then NULL. */
extern const char *const bench_gradient_lists[];

/* Fills *out and returns 0, or -1 when there is no such list. */
int bench_gradients_find(const char *name, struct bench_gradients *out);

#endif
