/* SPDX-License-Identifier: Apache-2.0 */
/* Walks through the architectures. */
#include "contrib/bench/hvd_bench/gradient_list.h"

#include <stddef.h>
#include <string.h>

static void add(struct bench_gradients *list, int64_t elements)
{
    list->elements[list->count++] = elements;
}

/* Weight and bias, one number for each of the outputs. */
static void add_norm(struct bench_gradients *list, int64_t channels)
{
    add(list, channels);
    add(list, channels);
}

static void add_linear(struct bench_gradients *list, int64_t inputs, int64_t outputs)
{
    add(list, inputs * outputs);
    add(list, outputs);
}

/* A convolution without bias and its normalisation; area: of its window. */
static void add_convolution(struct bench_gradients *list, int64_t inputs, int64_t outputs,
                            int64_t area)
{
    add(list, inputs * outputs * area);
    add_norm(list, outputs);
}

/* --- ResNet ----------------------------------------------------------------------------- */

static void add_resnet(struct bench_gradients *list, const int depths[4])
{
    int64_t channels = 64;

    add_convolution(list, 3, 64, 49);
    for (int stage = 0; stage < 4; stage++) {
        int64_t width = (int64_t)64 << stage;

        for (int block = 0; block < depths[stage]; block++) {
            add_convolution(list, channels, width, 1);
            add_convolution(list, width, width, 9);
            add_convolution(list, width, 4 * width, 1);
            if (block == 0) {
                add_convolution(list, channels, 4 * width, 1);
            }
            channels = 4 * width;
        }
    }
    add_linear(list, channels, 1000);
}

static void resnet50(struct bench_gradients *list)
{
    add_resnet(list, (const int[]){3, 4, 6, 3});
}

static void resnet101(struct bench_gradients *list)
{
    add_resnet(list, (const int[]){3, 4, 23, 3});
}

/* --- Inception V3 ----------------------------------------------------------------------- */

/* Convolutions in a row: pairs of outputs and area, until 0. */
static void add_branch(struct bench_gradients *list, int64_t inputs, const int *steps)
{
    for (; steps[0] != 0; steps += 2) {
        add_convolution(list, inputs, steps[0], steps[1]);
        inputs = steps[0];
    }
}

static void add_inception_a(struct bench_gradients *list, int64_t inputs, int pool)
{
    add_branch(list, inputs, (const int[]){64, 1, 0});
    add_branch(list, inputs, (const int[]){48, 1, 64, 25, 0});
    add_branch(list, inputs, (const int[]){64, 1, 96, 9, 96, 9, 0});
    add_branch(list, inputs, (const int[]){pool, 1, 0});
}

static void add_inception_c(struct bench_gradients *list, int inner)
{
    add_branch(list, 768, (const int[]){192, 1, 0});
    add_branch(list, 768, (const int[]){inner, 1, inner, 7, 192, 7, 0});
    add_branch(list, 768,
               (const int[]){inner, 1, inner, 7, inner, 7, inner, 7, 192, 7, 0});
    add_branch(list, 768, (const int[]){192, 1, 0});
}

/* Two of its branches fork at their end. */
static void add_inception_e(struct bench_gradients *list, int64_t inputs)
{
    add_branch(list, inputs, (const int[]){320, 1, 0});
    add_branch(list, inputs, (const int[]){384, 1, 384, 3, 384, 3, 0});
    add_branch(list, inputs, (const int[]){448, 1, 384, 9, 384, 3, 384, 3, 0});
    add_branch(list, inputs, (const int[]){192, 1, 0});
}

static void inception3(struct bench_gradients *list)
{
    add_branch(list, 3, (const int[]){32, 9, 32, 9, 64, 9, 80, 1, 192, 9, 0});
    add_inception_a(list, 192, 32);
    add_inception_a(list, 256, 64);
    add_inception_a(list, 288, 64);
    add_branch(list, 288, (const int[]){384, 9, 0});
    add_branch(list, 288, (const int[]){64, 1, 96, 9, 96, 9, 0});
    add_inception_c(list, 128);
    add_inception_c(list, 160);
    add_inception_c(list, 160);
    add_inception_c(list, 192);
    add_branch(list, 768, (const int[]){192, 1, 320, 9, 0});
    add_branch(list, 768, (const int[]){192, 1, 192, 7, 192, 7, 192, 9, 0});
    add_inception_e(list, 1280);
    add_inception_e(list, 2048);
    add_linear(list, 2048, 1000);
}

/* --- VGG and BERT ----------------------------------------------------------------------- */

static void vgg16(struct bench_gradients *list)
{
    static const int widths[] = {64,  64,  128, 128, 256, 256, 256,
                                 512, 512, 512, 512, 512, 512};
    int64_t channels = 3;

    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        add_linear(list, channels * 9, widths[i]);
        channels = widths[i];
    }
    add_linear(list, channels * 49, 4096);
    add_linear(list, 4096, 4096);
    add_linear(list, 4096, 1000);
}

static void bert_base(struct bench_gradients *list)
{
    const int64_t hidden = 768;

    add(list, 30522 * hidden);
    add(list, 512 * hidden);
    add(list, 2 * hidden);
    add_norm(list, hidden);
    for (int layer = 0; layer < 12; layer++) {
        for (int part = 0; part < 4; part++) { /* query, key, value, output */
            add_linear(list, hidden, hidden);
        }
        add_norm(list, hidden);
        add_linear(list, hidden, 4 * hidden);
        add_linear(list, 4 * hidden, hidden);
        add_norm(list, hidden);
    }
    add_linear(list, hidden, hidden);
}

/* --- by name ---------------------------------------------------------------------------- */

const char *const bench_gradient_lists[] = {"resnet50", "resnet101", "inception3",
                                            "vgg16",    "bert_base", NULL};

static void (*const makers[])(struct bench_gradients *) = {resnet50, resnet101,
                                                           inception3, vgg16, bert_base};

int bench_gradients_find(const char *name, struct bench_gradients *out)
{
    for (int i = 0; bench_gradient_lists[i] != NULL; i++) {
        if (strcmp(name, bench_gradient_lists[i]) == 0) {
            out->count = 0;
            makers[i](out);
            return 0;
        }
    }
    return -1;
}
