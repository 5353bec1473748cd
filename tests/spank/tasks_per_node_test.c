/* SPDX-License-Identifier: Apache-2.0 */
/* One task per GPU: when, how many, and what is said when it cannot be. */
#include "spank/tasks_per_node.h"

#include <string.h>

#include "tests/tap.h"

static bool gives(struct hvd_spank_allocation allocation, int expected)
{
    int tasks = -1;

    return hvd_spank_tasks_per_node(&allocation, &tasks, NULL) == 0 && tasks == expected;
}

static bool refuses(struct hvd_spank_allocation allocation, const char *advice)
{
    struct hvd_error err = {0};
    int tasks = -1;

    return hvd_spank_tasks_per_node(&allocation, &tasks, &err) == HVD_ERR_ARG &&
           tasks == -1 && strstr(err.text, advice) != NULL;
}

static void test_tasks(void)
{
    tap_ok(gives((struct hvd_spank_allocation){.nodes = 2,
                                               .gpus_per_node = 4,
                                               .cpus_per_node = 16},
                 4),
           "one task per GPU");
    tap_ok(gives((struct hvd_spank_allocation){.nodes = 2, .cpus_per_node = 16}, 0),
           "no GPUs: hvd has no say");
    tap_ok(gives((struct hvd_spank_allocation){.nodes = 2, .gpus = 8}, 4),
           "a total that divides by the nodes");
    tap_ok(gives((struct hvd_spank_allocation){.nodes = 2, .gpus = 8, .gpus_per_node = 4},
                 4),
           "a total that agrees with the node");
    tap_ok(gives((struct hvd_spank_allocation){.gpus = 8}, 0),
           "a total on unknown nodes tells nothing");
    tap_ok(gives((struct hvd_spank_allocation){.nodes = 1,
                                               .gpus_per_node = 4,
                                               .cpus_per_node = 16,
                                               .cpus_per_task = 4},
                 4),
           "cpus that just suffice");
    tap_ok(
        refuses((struct hvd_spank_allocation){.nodes = 2, .gpus = 6, .gpus_per_node = 4},
                "--gpus-per-node="),
        "nodes that differ in GPUs: says what to type");
    tap_ok(refuses((struct hvd_spank_allocation){.nodes = 2,
                                                 .gpus_per_node = 4,
                                                 .cpus_per_node = 1},
                   "--ntasks-per-node=4"),
           "too few cpus: says what to type");
    tap_ok(refuses((struct hvd_spank_allocation){.nodes = 1,
                                                 .gpus_per_node = 4,
                                                 .cpus_per_node = 15,
                                                 .cpus_per_task = 4},
                   "16 cpus"),
           "too few cpus for --cpus-per-task: says how many");
    tap_ok(refuses((struct hvd_spank_allocation){.nodes = 100000,
                                                 .gpus_per_node = 4096,
                                                 .cpus_per_node = 100000,
                                                 .cpus_per_task = 100000},
                   "cpus"),
           "the largest numbers do not overflow");
}

int main(void)
{
    test_tasks();
    return tap_done();
}
