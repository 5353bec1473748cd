/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors of each layer of well-known models and the multiplications of the layer:
 * ResNet and VGG-16 as torchvision defines them (224 x 224), BERT-base with pooler
 * (sequences of 128). */
#include "contrib/bench/simulate/models.h"

#include <string.h>

enum {
    MOST_LAYERS = 256
};

struct layer {
    int64_t elements[3]; /* elements of the layer's tensors; 0: no more tensors */
    double multiplications;
};

/* The layers, in the order of the forward pass. */
struct layers {
    int count;
    struct layer all[MOST_LAYERS];
};

static void add_layer(struct layers *layers, struct layer layer)
{
    layers->all[layers->count++] = layer;
}

/* Adds a convolution with `taps` weights per pair of channels and edge x edge outputs,
 * and its batch norm. */
static void add_norm_conv(struct layers *layers, int64_t in, int64_t out, int64_t taps,
                          int64_t edge)
{
    int64_t weights = in * out * taps;

    add_layer(layers, (struct layer){{weights, out, out},
                                     (double)weights * (double)(edge * edge)});
}

/* Adds a linear layer with a bias, applied at `locations` positions. */
static void add_linear(struct layers *layers, int64_t in, int64_t out, int64_t locations)
{
    add_layer(layers,
              (struct layer){{in * out, out, 0}, (double)(in * out) * (double)locations});
}

static void add_block(struct layers *layers, int64_t in, int64_t width, int64_t edge,
                      int64_t stride)
{
    add_norm_conv(layers, in, width, 1, edge * stride);
    add_norm_conv(layers, width, width, 9, edge);
    add_norm_conv(layers, width, 4 * width, 1, edge);
    if (in != 4 * width) {
        add_norm_conv(layers, in, 4 * width, 1, edge);
    }
}

static void add_resnet(struct layers *layers, const int depths[4])
{
    int64_t in = 64;

    add_norm_conv(layers, 3, 64, 49, 112);
    for (int stage = 0; stage < 4; stage++) {
        int64_t width = 64 << stage;

        for (int block = 0; block < depths[stage]; block++) {
            add_block(layers, in, width, 56 >> stage, stage > 0 && block == 0 ? 2 : 1);
            in = 4 * width;
        }
    }
    add_linear(layers, in, 1000, 1);
}

static void add_resnet50(struct layers *layers)
{
    add_resnet(layers, (const int[]){3, 4, 6, 3});
}

static void add_resnet101(struct layers *layers)
{
    add_resnet(layers, (const int[]){3, 4, 23, 3});
}

static void add_vgg16(struct layers *layers)
{
    static const int widths[5] = {64, 128, 256, 512, 512}, depths[5] = {2, 2, 3, 3, 3};
    int64_t in = 3;

    for (int stage = 0; stage < 5; stage++) {
        int64_t edge = 224 >> stage;

        for (int i = 0; i < depths[stage]; i++) {
            int64_t weights = 9 * in * widths[stage];

            add_layer(layers, (struct layer){{weights, widths[stage], 0},
                                             (double)weights * (double)(edge * edge)});
            in = widths[stage];
        }
    }
    add_linear(layers, in * 7 * 7, 4096, 1);
    add_linear(layers, 4096, 4096, 1);
    add_linear(layers, 4096, 1000, 1);
}

static void add_bert(struct layers *layers)
{
    const int64_t hidden = 768, length = 128;
    const struct layer norm = {{hidden, hidden, 0}, 0};

    add_layer(layers, (struct layer){{30522 * hidden, 512 * hidden, 2 * hidden}, 0});
    add_layer(layers, norm);
    for (int layer = 0; layer < 12; layer++) {
        for (int i = 0; i < 3; i++) { /* query, key, value */
            add_linear(layers, hidden, hidden, length);
        }
        add_layer(layers, (struct layer){.multiplications =
                                             (double)(2 * length * length * hidden)});
        add_linear(layers, hidden, hidden, length);
        add_layer(layers, norm);
        add_linear(layers, hidden, 4 * hidden, length);
        add_linear(layers, 4 * hidden, hidden, length);
        add_layer(layers, norm);
    }
    add_linear(layers, hidden, hidden, 1);
}

/* Samples per second of one P100 in float32 with synthetic data, from TensorFlow's
 * benchmarks of 2017 (tensorflow.org/performance/benchmarks; one GPU of a DGX-1, batch
 * 64): ResNet-50 219, ResNet-152 91.8, VGG-16 154. ResNet-101 lies between ResNet-50 and
 * ResNet-152 in time per image as in multiplications: 129. BERT-base with sequences of
 * 128 is an estimate: 67 GFLOP each, at 60 % of 9.3 TFLOP/s. */
static const struct {
    const char *name;
    void (*make)(struct layers *layers);
    double samples_s;
} entries[] = {
    {"resnet50", add_resnet50, 219},
    {"resnet101", add_resnet101, 129},
    {"vgg16", add_vgg16, 154},
    {"bert", add_bert, 83},
};

/* Fills the tensors in the order of the backward pass: the last layer first, and within a
 * layer the first tensor first. */
static void fill_model(struct simulate_model *model, const struct layers *layers)
{
    double all = 0, done = 0;

    for (int i = 0; i < layers->count; i++) {
        all += layers->all[i].multiplications;
    }
    for (int i = layers->count - 1; i >= 0; i--) {
        const struct layer *layer = &layers->all[i];

        done += layer->multiplications;
        for (int j = 0; j < 3 && layer->elements[j] > 0; j++) {
            model->tensors[model->count++] =
                (struct simulate_tensor){layer->elements[j], done / all};
        }
    }
}

int simulate_model_find(const char *name, struct simulate_model *model,
                        struct hvd_error *err)
{
    struct layers layers = {0};

    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        if (strcmp(entries[i].name, name) == 0) {
            *model = (struct simulate_model){.samples_s = entries[i].samples_s};
            entries[i].make(&layers);
            fill_model(model, &layers);
            return 0;
        }
    }
    return hvd_fail(err, HVD_ERR_ARG,
                    "model=%s: expected resnet50, resnet101, vgg16 or bert", name);
}
