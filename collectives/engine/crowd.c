/* SPDX-License-Identifier: Apache-2.0 */
/* Counting the ranks of each cpu. */
#include "collectives/engine/crowd.h"

void hvd_crowd_add(struct hvd_crowd_board *board, const cpu_set_t *cpus)
{
    int count = CPU_COUNT(cpus);

    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, cpus)) {
            atomic_fetch_add(&board->shares[cpu], (uint32_t)(HVD_CROWD_ONE / count));
        }
    }
    atomic_fetch_add(&board->ranks, 1);
}

uint32_t hvd_crowd_on(const struct hvd_crowd_board *board, const cpu_set_t *cpus)
{
    int count = CPU_COUNT(cpus);
    uint64_t sum = 0;

    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        sum += CPU_ISSET(cpu, cpus) ? atomic_load(&board->shares[cpu]) : 0;
    }
    return count > 0 ? (uint32_t)(sum / (uint64_t)count) : 0;
}

bool hvd_crowd_has_all(const struct hvd_crowd_board *board, int ranks)
{
    return atomic_load(&board->ranks) >= (uint32_t)ranks;
}
