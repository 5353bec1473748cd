/* SPDX-License-Identifier: Apache-2.0 */
/* Tests one task per GPU: when, how many, and the message if it is impossible. */
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
           "one task per GPU is chosen");
    tap_ok(gives((struct hvd_spank_allocation){.nodes = 2, .cpus_per_node = 16}, 0),
           "without GPUs, no number of tasks is chosen");
    tap_ok(gives((struct hvd_spank_allocation){.nodes = 2, .gpus = 8}, 4),
           "a total of GPUs is divided by the number of nodes");
    tap_ok(gives((struct hvd_spank_allocation){.nodes = 2, .gpus = 8, .gpus_per_node = 4},
                 4),
           "a total that matches the GPUs per node is accepted");
    tap_ok(gives((struct hvd_spank_allocation){.gpus = 8}, 0),
           "a total of GPUs on an unknown number of nodes chooses nothing");
    tap_ok(gives((struct hvd_spank_allocation){.nodes = 1,
                                               .gpus_per_node = 4,
                                               .cpus_per_node = 16,
                                               .cpus_per_task = 4},
                 4),
           "just enough cpus are accepted");
    tap_ok(
        refuses((struct hvd_spank_allocation){.nodes = 2, .gpus = 6, .gpus_per_node = 4},
                "--gpus-per-node="),
        "if nodes differ in GPUs, the error names the option to use");
    tap_ok(refuses((struct hvd_spank_allocation){.nodes = 2,
                                                 .gpus_per_node = 4,
                                                 .cpus_per_node = 1},
                   "--ntasks-per-node=4"),
           "with too few cpus, the error names the option to use");
    tap_ok(refuses((struct hvd_spank_allocation){.nodes = 1,
                                                 .gpus_per_node = 4,
                                                 .cpus_per_node = 15,
                                                 .cpus_per_task = 4},
                   "16 cpus"),
           "with too few cpus for --cpus-per-task, the error says how many are needed");
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
