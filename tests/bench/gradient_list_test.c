/* SPDX-License-Identifier: Apache-2.0 */
/* The lists have as many tensors and elements as the models have. */
#include "contrib/bench/hvd_bench/gradient_list.h"

#include <string.h>

#include "tests/tap.h"

static const struct model {
    const char *name;
    int tensors;
    int64_t elements;
    int64_t largest;
} models[] = {
    {"resnet50", 161, 25557032, 512 * 512 * 9},
    {"resnet101", 314, 44549160, 512 * 512 * 9},
    {"inception3", 284, 23834568, 2048 * 1000},
    {"vgg16", 32, 138357544, 25088 * 4096},
    {"bert_base", 199, 109482240, 30522 * 768},
};

int main(void)
{
    static struct bench_gradients list;
    size_t count = sizeof(models) / sizeof(models[0]);

    for (size_t i = 0; i < count; i++) {
        int64_t elements = 0, largest = 0;
        bool found = bench_gradients_find(models[i].name, &list) == 0;

        for (int tensor = 0; found && tensor < list.count; tensor++) {
            elements += list.elements[tensor];
            largest = list.elements[tensor] > largest ? list.elements[tensor] : largest;
        }
        tap_ok(found && list.count == models[i].tensors &&
                   elements == models[i].elements && largest == models[i].largest,
               "%s: %d tensors, %lld elements", models[i].name, models[i].tensors,
               (long long)models[i].elements);
        tap_ok(bench_gradient_lists[i] != NULL &&
                   strcmp(bench_gradient_lists[i], models[i].name) == 0,
               "%s is among the names", models[i].name);
    }
    tap_ok(bench_gradient_lists[count] == NULL, "there are no other names");
    tap_ok(bench_gradients_find("lenet", &list) != 0, "an unknown model is refused");
    return tap_done();
}
