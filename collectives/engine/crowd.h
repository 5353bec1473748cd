/* SPDX-License-Identifier: Apache-2.0 */
/* How many ranks of a node share a cpu, which decides how they wait for each other.
 *
 * Each rank adds its share to each cpu that it may run on: 1/n to each of n. A rank's crowd is the
 * mean over its own cpus: 1 where there is a cpu for each rank, wherever they are bound; 4 ranks on
 * the same 2 cpus make 2. */
#ifndef HVD_CROWD_H
#define HVD_CROWD_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* In memory that the ranks of a node share, zero at first. */
struct hvd_crowd_board {
    _Alignas(128) _Atomic uint32_t ranks; /* that have added theirs */
    _Atomic uint32_t shares[CPU_SETSIZE]; /* [cpu], 1 is HVD_CROWD_ONE */
};

enum {
    HVD_CROWD_ONE = 1 << 20
};

/* Once a rank. Cpus beyond CPU_SETSIZE, and a rank that may run nowhere, are not counted. */
void hvd_crowd_add(struct hvd_crowd_board *board, const cpu_set_t *cpus);

/* The crowd on these cpus, 1 is HVD_CROWD_ONE. Of the ranks that have come so far. */
uint32_t hvd_crowd_on(const struct hvd_crowd_board *board, const cpu_set_t *cpus);

/* Whether so many have added theirs. */
bool hvd_crowd_has_all(const struct hvd_crowd_board *board, int ranks);

#endif
