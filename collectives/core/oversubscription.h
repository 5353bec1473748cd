/* SPDX-License-Identifier: Apache-2.0 */
/* Whether ranks of a node share CPUs, which decides how they wait for each other.
 *
 * Each rank adds a share of 1/n to each of the n CPUs that it may run on. The load of a
 * rank is the sum of the shares on its CPUs, divided by their number: 1 if there is a CPU
 * for each rank, however they are bound; 2 for 4 ranks on the same 2 CPUs. */
#ifndef HVD_OVERSUBSCRIPTION_H
#define HVD_OVERSUBSCRIPTION_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Lies in memory that the ranks of a node share, and must be zeroed before use. */
struct hvd_cpu_board {
    /* the number of ranks that have added their shares */
    _Alignas(128) _Atomic uint32_t ranks;
    _Atomic uint32_t shares[CPU_SETSIZE]; /* [cpu] a share of 1 is HVD_CPU_LOAD_ONE */
};

enum {
    HVD_CPU_LOAD_ONE = 1 << 20
};

/* Adds the shares of a rank; called once by each rank. CPUs beyond CPU_SETSIZE, and ranks
 * without any CPU, are not counted. */
void hvd_cpu_board_add(struct hvd_cpu_board *board, const cpu_set_t *cpus);

/* Returns the load on these CPUs, in units of HVD_CPU_LOAD_ONE, from the ranks that have
 * been added so far. */
uint32_t hvd_cpu_board_load(const struct hvd_cpu_board *board, const cpu_set_t *cpus);

/* Whether this many ranks have added their shares. */
bool hvd_cpu_board_has_all(const struct hvd_cpu_board *board, int ranks);

/* One rank's view. Until all ranks of the node are on the board, it reports no
 * oversubscription. */
struct hvd_oversubscription {
    struct hvd_cpu_board *board;
    int local_size; /* ranks of this node */
    cpu_set_t cpus; /* the CPUs that this rank may use */
    bool is_known;
    /* Read by any thread: */
    /* there are more ranks than CPUs: yield early while spinning */
    _Atomic bool of_ranks;
    /* there are more progress threads and threads of the program than CPUs */
    _Atomic bool of_threads;
};

/* Adds this rank's CPUs to the board, which is borrowed. */
void hvd_oversubscription_join(struct hvd_oversubscription *load,
                               struct hvd_cpu_board *board, int local_size);

/* Computes the load once all ranks of the node are on the board. Call it often. */
void hvd_oversubscription_look(struct hvd_oversubscription *load);

/* Whether there are more ranks than CPUs; and whether one thread of the program and one
 * progress thread for each rank are more than the CPUs. Any thread. */
static inline bool hvd_oversubscription_of_ranks(const struct hvd_oversubscription *load)
{
    return atomic_load(&load->of_ranks);
}

static inline bool
hvd_oversubscription_of_threads(const struct hvd_oversubscription *load)
{
    return atomic_load(&load->of_threads);
}

#endif
