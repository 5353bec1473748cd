/* SPDX-License-Identifier: Apache-2.0 */
/* One task per GPU: when, how many, and what is said when it cannot be. */
#include "spank/tasks.h"

#include <string.h>

#include "tests/tap.h"

static bool gives(struct hvd_job job, int expected)
{
    int tasks = -1;

    return hvd_tasks_per_node(&job, &tasks, NULL) == 0 && tasks == expected;
}

static bool refuses(struct hvd_job job, const char *advice)
{
    struct hvd_error err = {0};
    int tasks = -1;

    return hvd_tasks_per_node(&job, &tasks, &err) == HVD_ERR_ARG && tasks == -1 &&
           strstr(err.text, advice) != NULL;
}

static void test_tasks(void)
{
    tap_ok(
        gives((struct hvd_job){.nodes = 2, .gpus_per_node = 4, .cpus_per_node = 16}, 4),
        "one task per GPU");
    tap_ok(gives((struct hvd_job){.nodes = 2, .cpus_per_node = 16}, 0),
           "no GPUs: hvd has no say");
    tap_ok(gives((struct hvd_job){.nodes = 2, .gpus = 8}, 4),
           "a total that divides by the nodes");
    tap_ok(gives((struct hvd_job){.nodes = 2, .gpus = 8, .gpus_per_node = 4}, 4),
           "a total that agrees with the node");
    tap_ok(gives((struct hvd_job){.gpus = 8}, 0),
           "a total on unknown nodes tells nothing");
    tap_ok(gives((struct hvd_job){.nodes = 1,
                                  .gpus_per_node = 4,
                                  .cpus_per_node = 16,
                                  .cpus_per_task = 4},
                 4),
           "cpus that just suffice");
    tap_ok(refuses((struct hvd_job){.nodes = 2, .gpus = 6, .gpus_per_node = 4},
                   "--gpus-per-node="),
           "nodes that differ in GPUs: says what to type");
    tap_ok(refuses((struct hvd_job){.nodes = 2, .gpus_per_node = 4, .cpus_per_node = 1},
                   "--ntasks-per-node=4"),
           "too few cpus: says what to type");
    tap_ok(refuses((struct hvd_job){.nodes = 1,
                                    .gpus_per_node = 4,
                                    .cpus_per_node = 15,
                                    .cpus_per_task = 4},
                   "16 cpus"),
           "too few cpus for --cpus-per-task: says how many");
    tap_ok(refuses((struct hvd_job){.nodes = 100000,
                                    .gpus_per_node = 4096,
                                    .cpus_per_node = 100000,
                                    .cpus_per_task = 100000},
                   "cpus"),
           "the largest numbers do not overflow");
}

static void test_gpu_count(void)
{
    static const struct {
        const char *text;
        int count;
    } cases[] = {
        {"4", 4},          {"a100:4", 4}, {"gpu:4", 4},       {"gres:gpu:4", 4},
        {"gpu:a100:2", 2}, {"gpu", 1},    {"gres:gpu", 1},    {"gpu:2(S:0-1)", 2},
        {"none", 0},       {"", 0},       {"gpu:2,nic:1", 0}, {"gpu:4294967297", 0},
        {"gpu:-2", 0},     {"gpu:2x", 0}, {"tmpdisk", 0},     {"gpu:", 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tap_ok(hvd_gpu_count(cases[i].text) == cases[i].count, "\"%s\" is %d GPUs",
               cases[i].text, cases[i].count);
    }
}

int main(void)
{
    test_tasks();
    test_gpu_count();
    return tap_done();
}
