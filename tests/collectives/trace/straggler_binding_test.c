/* SPDX-License-Identifier: Apache-2.0 */
/* Where a rank runs, for the page of the straggler report. */
#include "collectives/trace/straggler_binding.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

static void test_list(void)
{
    static bool has_cpu[4096];
    char text[104];

    tap_ok(strcmp(hvd_straggler_cpu_list(has_cpu, 16, text, sizeof(text)), "") == 0,
           "no CPU is an empty list");
    has_cpu[0] = has_cpu[1] = has_cpu[2] = has_cpu[5] = has_cpu[15] = true;
    tap_ok(strcmp(hvd_straggler_cpu_list(has_cpu, 16, text, sizeof(text)), "0-2,5,15") ==
               0,
           "neighbouring CPUs are a range: %s", text);
    for (int i = 0; i < 4096; i += 2) {
        has_cpu[i] = true;
        has_cpu[i + 1] = false;
    }
    hvd_straggler_cpu_list(has_cpu, 4096, text, sizeof(text));
    tap_ok(strlen(text) < sizeof(text) && strncmp(text, "0,2,4,", 6) == 0 &&
               strcmp(text + strlen(text) - 3, "...") == 0,
           "a long list is cut, and says so: %s", text);
}

static void test_own(void)
{
    struct hvd_straggler_binding own, copy = {0};
    char expected[16];
    cpu_set_t set;
    int cpu = sched_getcpu();

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (cpu < 0 || sched_setaffinity(0, sizeof(set), &set) != 0) {
        tap_skip("a rank tells its CPUs", "this process cannot be bound");
        return;
    }
    setenv("HVD_GPU_INDEX", "3", 1);
    unsetenv("HVD_NIC");
    setenv("UCX_NET_DEVICES", "mlx5_1:1", 1);
    snprintf(expected, sizeof(expected), "%d", cpu);
    hvd_straggler_binding_find(7, &own);
    tap_ok(own.rank == 7 && strcmp(own.cpus, expected) == 0 &&
               strcmp(own.gpu, "3") == 0 && strcmp(own.nic, "mlx5_1:1") == 0,
           "a rank tells its CPUs, its GPU and its network card: %s", own.cpus);
    tap_ok(hvd_straggler_binding_parse(&own, sizeof(own), 8, &copy) && copy.rank == 7 &&
               strcmp(copy.cpus, own.cpus) == 0,
           "another rank can read that");
    tap_ok(!hvd_straggler_binding_parse(&own, sizeof(own), 7, &copy) &&
               !hvd_straggler_binding_parse(&own, sizeof(own) - 1, 8, &copy),
           "but not from a rank that the job does not have, or a part of it");
    memset(own.nic, 'x', sizeof(own.nic));
    tap_ok(!hvd_straggler_binding_parse(&own, sizeof(own), 8, &copy),
           "nor a text without an end");
}

int main(void)
{
    test_list();
    test_own();
    return tap_done();
}
