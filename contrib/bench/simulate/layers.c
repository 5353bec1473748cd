/* SPDX-License-Identifier: Apache-2.0 */
/* ResNet and VGG-16 as torchvision defines them (224 x 224), Inception V3 without its second
 * classifier (299 x 299), BERT-base with pooler (sequences of 128): the shapes of
 * their weights, and the multiplications of each layer. */
#include "contrib/bench/simulate/layers.h"

#include "contrib/bench/simulate/events.h"

static void add(struct simulate_layers *layers, struct simulate_layer layer)
{
    if (layers->count == layers->capacity) {
        layers->all =
            simulate_grow(layers->all, &layers->capacity, sizeof(layers->all[0]));
    }
    layers->all[layers->count++] = layer;
}

/* A convolution of taps weights per pair of channels, making edge x edge, and its batch norm. */
static void add_norm_conv(struct simulate_layers *layers, int64_t in, int64_t out,
                          int64_t taps, int64_t edge)
{
    int64_t weights = in * out * taps;

    add(layers, (struct simulate_layer){{weights, out, out},
                                        (double)weights * (double)(edge * edge)});
}

/* With a bias; applied at `places` places. */
static void add_linear(struct simulate_layers *layers, int64_t in, int64_t out,
                       int64_t places)
{
    add(layers,
        (struct simulate_layer){{in * out, out, 0}, (double)(in * out) * (double)places});
}

/* --- ResNet --- */

static void add_block(struct simulate_layers *layers, int64_t in, int64_t width,
                      int64_t edge, int64_t stride)
{
    add_norm_conv(layers, in, width, 1, edge * stride);
    add_norm_conv(layers, width, width, 9, edge);
    add_norm_conv(layers, width, 4 * width, 1, edge);
    if (in != 4 * width) {
        add_norm_conv(layers, in, 4 * width, 1, edge);
    }
}

static void add_resnet(struct simulate_layers *layers, const int depths[4])
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

void simulate_layers_resnet50(struct simulate_layers *layers)
{
    add_resnet(layers, (const int[]){3, 4, 6, 3});
}

void simulate_layers_resnet101(struct simulate_layers *layers)
{
    add_resnet(layers, (const int[]){3, 4, 23, 3});
}

/* --- Inception V3: the names of its blocks are those of torchvision --- */

static void add_inception_a(struct simulate_layers *layers, int64_t in, int64_t pool)
{
    add_norm_conv(layers, in, 64, 1, 35);
    add_norm_conv(layers, in, 48, 1, 35);
    add_norm_conv(layers, 48, 64, 25, 35);
    add_norm_conv(layers, in, 64, 1, 35);
    add_norm_conv(layers, 64, 96, 9, 35);
    add_norm_conv(layers, 96, 96, 9, 35);
    add_norm_conv(layers, in, pool, 1, 35);
}

static void add_inception_b(struct simulate_layers *layers)
{
    add_norm_conv(layers, 288, 384, 9, 17);
    add_norm_conv(layers, 288, 64, 1, 35);
    add_norm_conv(layers, 64, 96, 9, 35);
    add_norm_conv(layers, 96, 96, 9, 17);
}

static void add_inception_c(struct simulate_layers *layers, int64_t width)
{
    add_norm_conv(layers, 768, 192, 1, 17);
    add_norm_conv(layers, 768, width, 1, 17);
    add_norm_conv(layers, width, width, 7, 17);
    add_norm_conv(layers, width, 192, 7, 17);
    add_norm_conv(layers, 768, width, 1, 17);
    add_norm_conv(layers, width, width, 7, 17);
    add_norm_conv(layers, width, width, 7, 17);
    add_norm_conv(layers, width, width, 7, 17);
    add_norm_conv(layers, width, 192, 7, 17);
    add_norm_conv(layers, 768, 192, 1, 17);
}

static void add_inception_d(struct simulate_layers *layers)
{
    add_norm_conv(layers, 768, 192, 1, 17);
    add_norm_conv(layers, 192, 320, 9, 8);
    add_norm_conv(layers, 768, 192, 1, 17);
    add_norm_conv(layers, 192, 192, 7, 17);
    add_norm_conv(layers, 192, 192, 7, 17);
    add_norm_conv(layers, 192, 192, 9, 8);
}

static void add_inception_e(struct simulate_layers *layers, int64_t in)
{
    add_norm_conv(layers, in, 320, 1, 8);
    add_norm_conv(layers, in, 384, 1, 8);
    add_norm_conv(layers, 384, 384, 3, 8);
    add_norm_conv(layers, 384, 384, 3, 8);
    add_norm_conv(layers, in, 448, 1, 8);
    add_norm_conv(layers, 448, 384, 9, 8);
    add_norm_conv(layers, 384, 384, 3, 8);
    add_norm_conv(layers, 384, 384, 3, 8);
    add_norm_conv(layers, in, 192, 1, 8);
}

void simulate_layers_inception3(struct simulate_layers *layers)
{
    add_norm_conv(layers, 3, 32, 9, 149);
    add_norm_conv(layers, 32, 32, 9, 147);
    add_norm_conv(layers, 32, 64, 9, 147);
    add_norm_conv(layers, 64, 80, 1, 73);
    add_norm_conv(layers, 80, 192, 9, 71);
    add_inception_a(layers, 192, 32);
    add_inception_a(layers, 256, 64);
    add_inception_a(layers, 288, 64);
    add_inception_b(layers);
    add_inception_c(layers, 128);
    add_inception_c(layers, 160);
    add_inception_c(layers, 160);
    add_inception_c(layers, 192);
    add_inception_d(layers);
    add_inception_e(layers, 1280);
    add_inception_e(layers, 2048);
    add_linear(layers, 2048, 1000, 1);
}

/* --- VGG-16 --- */

void simulate_layers_vgg16(struct simulate_layers *layers)
{
    static const int widths[5] = {64, 128, 256, 512, 512};
    static const int depths[5] = {2, 2, 3, 3, 3};
    int64_t in = 3;

    for (int stage = 0; stage < 5; stage++) {
        for (int i = 0; i < depths[stage]; i++) {
            int64_t edge = 224 >> stage;
            int64_t weights = 9 * in * widths[stage];

            add(layers, (struct simulate_layer){{weights, widths[stage], 0},
                                                (double)weights * (double)(edge * edge)});
            in = widths[stage];
        }
    }
    add_linear(layers, 512 * 49, 4096, 1);
    add_linear(layers, 4096, 4096, 1);
    add_linear(layers, 4096, 1000, 1);
}

/* --- BERT-base --- */

void simulate_layers_bert(struct simulate_layers *layers)
{
    const int64_t hidden = 768, length = 128;

    add(layers, (struct simulate_layer){{30522 * hidden, 512 * hidden, 2 * hidden}, 0});
    add(layers, (struct simulate_layer){{hidden, hidden, 0}, 0});
    for (int layer = 0; layer < 12; layer++) {
        for (int i = 0; i < 3; i++) {
            add_linear(layers, hidden, hidden, length);
        }
        add(layers, (struct simulate_layer){.multiplications =
                                                (double)(2 * length * length * hidden)});
        add_linear(layers, hidden, hidden, length);
        add(layers, (struct simulate_layer){{hidden, hidden, 0}, 0});
        add_linear(layers, hidden, 4 * hidden, length);
        add_linear(layers, 4 * hidden, hidden, length);
        add(layers, (struct simulate_layer){{hidden, hidden, 0}, 0});
    }
    add_linear(layers, hidden, hidden, 1);
}
