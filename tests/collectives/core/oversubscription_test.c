/* SPDX-License-Identifier: Apache-2.0 */
/* The number of ranks that share a CPU, for common bindings. Prints TAP. */
#include <string.h>

#include "collectives/core/oversubscription.h"
#include "tests/tap.h"

static struct hvd_cpu_board board;

static void begin(void)
{
    memset(&board, 0, sizeof(board));
}

static cpu_set_t cpus_from(int first, int count)
{
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    for (int cpu = first; cpu < first + count; cpu++) {
        CPU_SET(cpu, &cpus);
    }
    return cpus;
}

/* Adds a rank that is bound to CPUs [first, first + count). */
static void add(int first, int count)
{
    cpu_set_t cpus = cpus_from(first, count);

    hvd_cpu_board_add(&board, &cpus);
}

static uint32_t load_on(int first, int count)
{
    cpu_set_t cpus = cpus_from(first, count);

    return hvd_cpu_board_load(&board, &cpus);
}

static void test_unbound(void)
{
    begin();
    for (int i = 0; i < 4; i++) {
        add(0, 2);
    }
    tap_ok(load_on(0, 2) == 2 * HVD_CPU_LOAD_ONE,
           "4 ranks on the same 2 cpus: 2 on each");
    begin();
    for (int i = 0; i < 3; i++) {
        add(0, 48);
    }
    tap_ok(load_on(0, 48) < HVD_CPU_LOAD_ONE / 2,
           "3 ranks on 48 cpus: room for as many threads");
}

static void test_bound(void)
{
    begin();
    for (int i = 0; i < 8; i++) {
        add(6 * i, 6);
    }
    tap_ok(load_on(12, 6) < HVD_CPU_LOAD_ONE / 2,
           "8 ranks on 6 cpus each of their own: room");
    begin();
    add(0, 1);
    add(1, 1);
    tap_ok(load_on(1, 1) == HVD_CPU_LOAD_ONE, "a rank bound to one cpu fills it");
    begin();
    add(0, 4);
    add(0, 4);
    add(4, 8);
    tap_ok(load_on(0, 4) == HVD_CPU_LOAD_ONE / 2 && load_on(4, 8) == HVD_CPU_LOAD_ONE / 8,
           "each rank sees its own cpus");
}

static void test_edges(void)
{
    begin();
    add(0, 0);
    tap_ok(load_on(0, 0) == 0 && hvd_cpu_board_has_all(&board, 1),
           "a rank without known CPUs counts as present");
    tap_ok(!hvd_cpu_board_has_all(&board, 2),
           "a rank that has not added its CPUs is missing");
    begin();
    add(CPU_SETSIZE - 1, 1);
    tap_ok(load_on(CPU_SETSIZE - 1, 1) == HVD_CPU_LOAD_ONE, "the last cpu counts");
}

int main(void)
{
    test_unbound();
    test_bound();
    test_edges();
    return tap_done();
}
