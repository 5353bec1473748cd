/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient lists against the models' known sizes, and steps against what was published. */
#include "contrib/bench/simulate/training.h"

#include <math.h>
#include <string.h>

#include "tests/tap.h"

static bool has_size(const char *name, int tensors, int64_t elements)
{
    struct simulate_model model;
    bool is_right;
    double last = 0;

    if (simulate_model_init(&model, name, NULL) != 0) {
        return false;
    }
    is_right = model.count == tensors && simulate_model_elements(&model) == elements;
    if (!is_right) {
        tap_note("%s: %d tensors, %lld elements", name, model.count,
                 (long long)simulate_model_elements(&model));
    }
    for (int i = 0; i < model.count; i++) {
        is_right = is_right && model.tensors[i].ready >= last;
        last = model.tensors[i].ready;
    }
    simulate_model_finish(&model);
    return is_right && fabs(last - 1) < 1e-9;
}

static void test_models(void)
{
    struct simulate_model model;

    tap_ok(has_size("resnet50", 161, 25557032), "ResNet-50");
    tap_ok(has_size("resnet101", 314, 44549160), "ResNet-101");
    tap_ok(has_size("inception3", 284, 23834568), "Inception V3");
    tap_ok(has_size("vgg16", 32, 138357544), "VGG-16");
    tap_ok(has_size("bert", 199, 109482240), "BERT-base");
    memset(&model, 0xa5, sizeof(model));
    tap_ok(simulate_model_init(&model, "resnet", NULL) == HVD_ERR_ARG, "no other");
    simulate_model_finish(&model);
    tap_ok(model.tensors == NULL, "which leaves nothing to free");
}

static struct simulate_training train(enum simulate_schedule schedule, const char *text)
{
    struct simulate_options options = simulate_defaults(schedule);
    struct simulate_training training = {0};
    struct hvd_error err = {0};

    if (simulate_parse(text, &options, &err) != 0 ||
        simulate_training(&options, &training, &err) != 0) {
        tap_note("%s: %s", text, err.text);
        exit(1);
    }
    return training;
}

static void test_published(void)
{
    static const struct {
        const char *options;
        double efficiency;
    } cases[] = {
        {"model=inception3", 0.90}, {"model=resnet101", 0.90}, {"model=vgg16", 0.68}};
    bool is_near = true;

    for (int i = 0; i < 3; i++) {
        double found = train(SIMULATE_HOROVOD, cases[i].options).efficiency;

        is_near = is_near && fabs(found - cases[i].efficiency) < 0.01;
        tap_note("%s: %.3f, published %.2f", cases[i].options, found,
                 cases[i].efficiency);
    }
    tap_ok(is_near, "Horovod on 512 GPUs, within 1 of 100");
}

static void test_better(void)
{
    static const char *const cases[] = {"model=inception3",
                                        "model=resnet101",
                                        "model=vgg16",
                                        "model=bert",
                                        "model=resnet101,nodes=3,device=v100,link=10Gb",
                                        "model=resnet101,nodes=1024",
                                        "model=vgg16,nodes=1024"};
    bool is_better = true;

    for (int i = 0; i < 7; i++) {
        is_better = is_better && train(SIMULATE_HVD, cases[i]).efficiency >=
                                     train(SIMULATE_HOROVOD, cases[i]).efficiency;
    }
    tap_ok(is_better, "hvd's schedule does not lose to a flat ring");
}

/* All gradients in one batch at the end, or nothing to exchange. */
static void test_bounds(void)
{
    struct simulate_training alone =
        train(SIMULATE_HVD, "nodes=1,gpus=1,model=vgg16,pcie=1000GB");
    struct simulate_training slow = train(SIMULATE_HVD, "nodes=4,model=vgg16,link=1Gb");

    tap_ok(alone.step >= alone.alone && alone.efficiency > 0.98,
           "a rank alone is as fast as alone");
    tap_ok(slow.step > 2 * 138357544.0 * 4 * 3 / 4 / (1e9 / 8),
           "no step is shorter than its bytes on the card");
}

/* The clock of the agreement would overflow. */
static void test_too_slow(void)
{
    struct simulate_options options = simulate_defaults(SIMULATE_HVD);
    struct simulate_training training;
    struct hvd_error err = {0};

    tap_ok(simulate_parse("compute=1000000s,jitter=1000", &options, &err) == 0 &&
               simulate_training(&options, &training, &err) == HVD_ERR_ARG &&
               strstr(err.text, "1e+08 seconds") != NULL,
           "a machine on which a step takes years is refused");
}

int main(void)
{
    test_models();
    test_published();
    test_better();
    test_bounds();
    test_too_slow();
    return tap_done();
}
