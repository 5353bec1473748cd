/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of the node's other ranks, read and written where it is: one copy instead of
 * two through slots.
 *
 * Whether the kernel allows that depends on ptrace's rules, namespaces and seccomp; so
 * every rank tries all others once, and only where all of them can it is used by any.
 *
 * A rank that dies leaves its pid to others. So each has a secret number, and who reaches
 * for its memory looks at that, too: no other process is taken for it. A rank that gives
 * memory back of which others may still read hides the number first, and what they read
 * counts for nothing; who writes says so before it looks, and is waited for.
 *
 * Threads: one thread at a time. */
#ifndef HVD_SHM_REACH_H
#define HVD_SHM_REACH_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/transport/shm/shm.h"

/* Whether all ranks of the node have said what they can reach; tries the others when all
 * are there. Called by every rank until it is true: that a call may go further its
 * eventfd tells. */
bool hvd_shm_settle(struct hvd_shm *shm);

/* Whether every rank of the node can reach every other one; false before it is
 * settled. */
bool hvd_shm_can_reach(const struct hvd_shm *shm);

/* Copies what a local rank has at an address, or to there. Returns 0; HVD_INPROGRESS when
 * the rank has died or has hidden, which others will tell; HVD_ERR_ARG when it has no
 * such memory; HVD_ERR_SYS, logged. */
int hvd_shm_read(const struct hvd_shm *shm, int local_rank, uint64_t address, void *to,
                 size_t bytes);
int hvd_shm_write(struct hvd_shm *shm, int local_rank, uint64_t address, const void *from,
                  size_t bytes);

/* From now on no other rank reads or writes this rank's memory, because the job has
 * failed; the others have been told. Waits for ranks that are in the middle of a write,
 * but not for one that has been stopped there: its write begins at this rank's door,
 * which is shut now. Waits 3 s at most, not counting time in which this rank did not run.
 * False, logged: a write may still be under way in the kernel, so memory that was offered
 * must not be freed. Not while this rank writes itself. */
bool hvd_shm_hide(struct hvd_shm *shm);

#endif
