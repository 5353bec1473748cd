/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the ranks of a node share: staging slots and counters.
 *
 * It is a memfd: it has no name, lives as long as a rank maps it, and cannot be left behind.
 * The node's leader creates it and hands the descriptor over. Each rank writes only its own
 * slots and its own lines:
 *
 *   counter  how often the rank has signalled; only grows
 *   asleep   1 while the rank sleeps and wants its doorbell (an eventfd) rung at a signal
 *
 * Threads: the counters are atomic; everything else is for one thread at a time. */
#ifndef HVD_SHM_H
#define HVD_SHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/schedule.h"
#include "gpu_binding/error.h"

struct hvd_shm;

/* A new segment for local_size ranks. Returns its descriptor, which the caller owns, or a
 * negative status. */
int hvd_shm_open(int local_size, const struct hvd_geometry *geometry,
                 struct hvd_error *err);

/* Maps the segment (fd stays the caller's and may be closed afterwards) and backs this
 * rank's own part with memory, near the calling thread. doorbells: [local_size] eventfds, the
 * caller's, kept until destroy; that of this rank is not used. The caller owns *out. */
int hvd_shm_create(int fd, int local_rank, int local_size,
                   const struct hvd_geometry *geometry, const int *doorbells,
                   struct hvd_shm **out, struct hvd_error *err);
void hvd_shm_destroy(struct hvd_shm *shm); /* unmaps; NULL is fine */

/* Slot memory of a local rank: IN or OUT. */
char *hvd_shm_slot(const struct hvd_shm *shm, enum hvd_place_kind kind, int local_rank,
                   int slot);

/* Adds one to this rank's counter, with all writes before it visible to who reads it, and
 * rings those who sleep. */
void hvd_shm_signal(struct hvd_shm *shm);

uint64_t hvd_shm_counter(const struct hvd_shm *shm, int local_rank);

/* Says that this rank is about to sleep (then it must look at the counters once more before
 * it does) or is awake. */
void hvd_shm_set_asleep(struct hvd_shm *shm, bool asleep);

#endif
