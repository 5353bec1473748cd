/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of well-known models: the sizes of their tensors. */
#include "tests/collectives/tuner/tuner_models.h"

struct list {
    int64_t *elements;
    int count;
};

static void add(struct list *list, int64_t elements)
{
    list->elements[list->count++] = elements;
}

static void add_layer(struct list *list, int64_t weights, int64_t outputs)
{
    add(list, weights);
    add(list, outputs);
}

/* Adds a convolution and its normalisation. */
static void add_convolution(struct list *list, int64_t weights, int64_t outputs)
{
    add_layer(list, weights, outputs);
    add(list, outputs);
}

static void add_resnet50(struct list *list)
{
    static const int depths[] = {3, 4, 6, 3};
    int64_t inputs = 64;

    add_convolution(list, 64 * 3 * 49, 64);
    for (int layer = 0; layer < 4; layer++) {
        int64_t width = 64 << layer;

        for (int block = 0; block < depths[layer]; block++) {
            add_convolution(list, width * inputs, width);
            add_convolution(list, width * width * 9, width);
            add_convolution(list, 4 * width * width, 4 * width);
            if (block == 0) {
                add_convolution(list, 4 * width * inputs, 4 * width);
            }
            inputs = 4 * width;
        }
    }
    add_layer(list, 1000 * inputs, 1000);
}

static void add_vgg16(struct list *list)
{
    static const int widths[] = {64,  64,  128, 128, 256, 256, 256,
                                 512, 512, 512, 512, 512, 512};
    int64_t inputs = 3;

    for (int i = 0; i < 13; i++) {
        add_layer(list, widths[i] * inputs * 9, widths[i]);
        inputs = widths[i];
    }
    add_layer(list, (int64_t)4096 * 512 * 49, 4096);
    add_layer(list, 4096 * 4096, 4096);
    add_layer(list, 1000 * 4096, 1000);
}

static void add_bert_base(struct list *list)
{
    const int64_t hidden = 768, inner = 3072;

    add(list, 30522 * hidden);
    add(list, 512 * hidden);
    add(list, 2 * hidden);
    add_layer(list, hidden, hidden);
    for (int layer = 0; layer < 12; layer++) {
        for (int i = 0; i < 4; i++) {
            add_layer(list, hidden * hidden, hidden);
        }
        add_layer(list, hidden, hidden);
        add_layer(list, inner * hidden, inner);
        add_layer(list, inner * hidden, hidden);
        add_layer(list, hidden, hidden);
    }
    add_layer(list, hidden * hidden, hidden);
}

const char *model_name(enum model model)
{
    static const char *const names[MODELS] = {"resnet50", "vgg16", "bert_base"};

    return names[model];
}

int model_gradients(enum model model, int64_t *elements)
{
    static void (*const adders[MODELS])(struct list *) = {add_resnet50, add_vgg16,
                                                          add_bert_base};
    struct list list = {.elements = elements};

    adders[model](&list);
    for (int i = 0; i < list.count / 2; i++) {
        int64_t first = elements[i];

        elements[i] = elements[list.count - 1 - i];
        elements[list.count - 1 - i] = first;
    }
    return list.count;
}
