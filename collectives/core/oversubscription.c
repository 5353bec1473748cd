/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the ranks that share each CPU. */
#include "collectives/core/oversubscription.h"

void hvd_cpu_board_add(struct hvd_cpu_board *board, const cpu_set_t *cpus)
{
    int count = CPU_COUNT(cpus);

    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, cpus)) {
            atomic_fetch_add(&board->shares[cpu], (uint32_t)(HVD_CPU_LOAD_ONE / count));
        }
    }
    atomic_fetch_add(&board->ranks, 1);
}

uint32_t hvd_cpu_board_load(const struct hvd_cpu_board *board, const cpu_set_t *cpus)
{
    int count = CPU_COUNT(cpus);
    uint64_t sum = 0;

    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        sum += CPU_ISSET(cpu, cpus) ? atomic_load(&board->shares[cpu]) : 0;
    }
    return count > 0 ? (uint32_t)(sum / (uint64_t)count) : 0;
}

bool hvd_cpu_board_has_all(const struct hvd_cpu_board *board, int ranks)
{
    return atomic_load(&board->ranks) >= (uint32_t)ranks;
}

void hvd_oversubscription_join(struct hvd_oversubscription *load,
                               struct hvd_cpu_board *board, int local_size)
{
    load->board = board;
    load->local_size = local_size;
    if (sched_getaffinity(0, sizeof(load->cpus), &load->cpus) != 0) {
        /* there are more CPUs than a cpu_set_t holds, so there is room */
        CPU_ZERO(&load->cpus);
    }
    hvd_cpu_board_add(board, &load->cpus);
}

void hvd_oversubscription_look(struct hvd_oversubscription *load)
{
    uint32_t mean;

    if (load->is_known || !hvd_cpu_board_has_all(load->board, load->local_size)) {
        return;
    }
    mean = hvd_cpu_board_load(load->board, &load->cpus);
    atomic_store(&load->of_ranks, mean > HVD_CPU_LOAD_ONE);
    atomic_store(&load->of_threads, 2 * mean > HVD_CPU_LOAD_ONE);
    load->is_known = true;
}
