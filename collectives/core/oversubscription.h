/* SPDX-License-Identifier: Apache-2.0 */
/* Whether ranks of a node share cpus, which decides how they wait for each other.
 *
 * Each rank adds its share to each cpu that it may run on: 1/n to each of n. A rank's
 * load is the mean over its own cpus: 1 where there is a cpu for each rank, wherever they
 * are bound; 4 ranks on the same 2 cpus make 2. */
#ifndef HVD_OVERSUBSCRIPTION_H
#define HVD_OVERSUBSCRIPTION_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* In memory that the ranks of a node share, zero at first. */
struct hvd_cpu_board {
    _Alignas(128) _Atomic uint32_t ranks; /* that have added theirs */
    _Atomic uint32_t shares[CPU_SETSIZE]; /* [cpu], 1 is HVD_CPU_LOAD_ONE */
};

enum {
    HVD_CPU_LOAD_ONE = 1 << 20
};

/* Once a rank. Cpus beyond CPU_SETSIZE, and a rank that may run nowhere, are not
 * counted. */
void hvd_cpu_board_add(struct hvd_cpu_board *board, const cpu_set_t *cpus);

/* The load on these cpus, 1 is HVD_CPU_LOAD_ONE. Of the ranks that have come so far. */
uint32_t hvd_cpu_board_load(const struct hvd_cpu_board *board, const cpu_set_t *cpus);

/* Whether so many have added theirs. */
bool hvd_cpu_board_has_all(const struct hvd_cpu_board *board, int ranks);

/* What one rank knows of it. Until all ranks of the node are on the board, nobody is in
 * the way. */
struct hvd_oversubscription {
    struct hvd_cpu_board *board;
    int local_size; /* ranks of this node */
    cpu_set_t cpus; /* that this rank may use */
    bool is_known;
    /* Any thread reads them: */
    _Atomic bool of_ranks; /* more ranks than cpus: yield early while spinning */
    _Atomic bool of_threads; /* the same of the progress thread beside a trainer's */
};

/* Tells the others of the node which cpus this rank may use. board is borrowed. */
void hvd_oversubscription_join(struct hvd_oversubscription *load,
                               struct hvd_cpu_board *board, int local_size);

/* Call it often: it is known once all ranks of the node have told theirs. */
void hvd_oversubscription_look(struct hvd_oversubscription *load);

/* More ranks than cpus; and the same of the progress threads beside the program's. Any
 * thread. */
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
