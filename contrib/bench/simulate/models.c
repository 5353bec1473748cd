/* SPDX-License-Identifier: Apache-2.0 */
/* Models by name: layers turned round, with published speeds. */
#include "contrib/bench/simulate/models.h"

#include <stdlib.h>
#include <string.h>

#include "contrib/bench/simulate/layers.h"

struct entry {
    const char *name;
    const char *title;
    void (*make)(struct simulate_layers *layers);
    double p100;
    double v100;
};

/* Images per second of one GPU in float32, synthetic data.
 *
 * P100: TensorFlow's benchmarks of 2017 (tensorflow.org/performance/benchmarks), one GPU of a DGX-1,
 * batch 64: Inception V3 142, ResNet-50 219, ResNet-152 91.8, VGG-16 154. ResNet-101 lies between
 * ResNet-50 and ResNet-152 in time per image as in multiplications: 129.
 *
 * V100: Lambda's benchmarks of 2018 (tf_cnn_benchmarks): ResNet-50 405, ResNet-152 155,
 * Inception V3 259; ResNet-101 between them: 224. VGG-16: not published there; P100's times the
 * mean ratio of the other three, 1.79.
 *
 * BERT-base, sequences of 128: 67 GFLOP each, at 60 % of 9.3 and 15.7 TFLOP/s; estimated. */
static const struct entry entries[] = {
    {"resnet50", "ResNet-50", simulate_layers_resnet50, 219, 405},
    {"resnet101", "ResNet-101", simulate_layers_resnet101, 129, 224},
    {"inception3", "Inception V3", simulate_layers_inception3, 142, 259},
    {"vgg16", "VGG-16", simulate_layers_vgg16, 154, 276},
    {"bert", "BERT-base", simulate_layers_bert, 83, 140},
};

/* Last layer first; within a layer the first tensor first. */
static void turn_round(const struct simulate_layers *layers, struct simulate_model *model)
{
    double done = 0;

    for (size_t i = layers->count; i-- > 0;) {
        const struct simulate_layer *layer = &layers->all[i];

        done += layer->multiplications;
        for (int j = 0; j < 3 && layer->elements[j] > 0; j++) {
            model->tensors[model->count++] = (struct simulate_tensor){
                layer->elements[j], done / model->multiplications};
        }
    }
}

static int fill(struct simulate_model *model, const struct entry *entry)
{
    struct simulate_layers layers = {0};

    model->name = entry->name;
    model->title = entry->title;
    model->p100 = entry->p100;
    model->v100 = entry->v100;
    entry->make(&layers);
    model->tensors = calloc(3 * layers.count, sizeof(model->tensors[0]));
    for (size_t i = 0; i < layers.count; i++) {
        model->multiplications += layers.all[i].multiplications;
    }
    if (model->tensors != NULL) {
        turn_round(&layers, model);
    }
    free(layers.all);
    return model->tensors != NULL ? 0 : HVD_ERR_NOMEM;
}

int simulate_model_init(struct simulate_model *model, const char *name,
                        struct hvd_error *err)
{
    *model = (struct simulate_model){0};
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        if (strcmp(entries[i].name, name) == 0) {
            return fill(model, &entries[i]);
        }
    }
    return hvd_fail(err, HVD_ERR_ARG,
                    "model=%s: expected resnet50, resnet101, inception3, vgg16 or bert",
                    name);
}

void simulate_model_finish(struct simulate_model *model)
{
    free(model->tensors);
    *model = (struct simulate_model){0};
}

int64_t simulate_model_elements(const struct simulate_model *model)
{
    int64_t elements = 0;

    for (int i = 0; i < model->count; i++) {
        elements += model->tensors[i].elements;
    }
    return elements;
}
