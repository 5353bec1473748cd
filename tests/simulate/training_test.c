/* SPDX-License-Identifier: Apache-2.0 */
/* Compares lists of gradients with the models' known sizes, and steps with their
 * bounds. */
#include "contrib/bench/simulate/training.h"

#include <math.h>
#include <string.h>

#include "contrib/bench/simulate/models.h"
#include "tests/tap.h"

static bool has_size(const char *name, int tensors, int64_t elements)
{
    static struct simulate_model model;
    int64_t found = 0;
    double last = 0;
    bool is_right = simulate_model_find(name, &model, NULL) == 0;

    for (int i = 0; is_right && i < model.count; i++) {
        is_right = model.tensors[i].ready >= last;
        last = model.tensors[i].ready;
        found += model.tensors[i].elements;
    }
    if (model.count != tensors || found != elements) {
        tap_note("%s: %d tensors, %lld elements", name, model.count, (long long)found);
    }
    return is_right && model.count == tensors && found == elements &&
           fabs(last - 1) < 1e-9;
}

static void test_models(void)
{
    static struct simulate_model model;

    tap_ok(has_size("resnet50", 161, 25557032), "ResNet-50");
    tap_ok(has_size("resnet101", 314, 44549160), "ResNet-101");
    tap_ok(has_size("vgg16", 32, 138357544), "VGG-16");
    tap_ok(has_size("bert", 199, 109482240), "BERT-base");
    tap_ok(simulate_model_find("resnet", &model, NULL) == HVD_ERR_ARG,
           "other models are refused");
}

static struct simulate_training train(const char *text)
{
    struct simulate_options options = simulate_defaults();
    struct simulate_training training = {0};
    struct hvd_error err = {0};

    if (simulate_parse(text, &options, &err) != 0 ||
        simulate_training(&options, &training, &err) != 0) {
        tap_note("%s: %s", text, err.text);
        exit(1);
    }
    return training;
}

/* All gradients are in one batch at the end, or there is nothing to exchange. */
static void test_bounds(void)
{
    struct simulate_training alone = train("nodes=1,gpus=1,model=vgg16,pcie=1000GB");
    struct simulate_training slow = train("nodes=4,model=vgg16,link=1Gb");

    tap_ok(alone.step >= alone.alone && alone.efficiency > 0.98,
           "a job of one rank is as fast as one GPU alone");
    tap_ok(slow.step > 2 * 138357544.0 * 4 * 3 / 4 / (1e9 / 8),
           "no step is shorter than its bytes on the card");
    tap_ok(slow.step >= slow.busy && slow.exposed == slow.step - slow.compute,
           "batches run one after the other");
}

/* A small threshold splits batches that a large threshold fuses. */
static void test_fusion(void)
{
    int few = train("nodes=2,model=resnet50,link=1Gb").batches;
    int many = train("nodes=2,model=resnet50,link=1Gb,fusion=1M").batches;

    tap_ok(few > 1 && few < many && many <= 161, "tensors are fused up to the threshold");
}

int main(void)
{
    test_models();
    test_bounds();
    test_fusion();
    return tap_done();
}
