/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the memory of the node's other ranks in place (cross-memory attach):
 * one copy instead of two through slots.
 *
 * Whether the kernel allows this depends on ptrace's rules, namespaces and seccomp.
 * Therefore every rank tries all others once, and no rank uses it unless all of them can.
 *
 * The pid of a dead rank may be reused. Therefore each rank has a secret number, which
 * others read together with its memory, so that no other process is mistaken for it. A
 * rank that frees memory which others may still read hides its secret first, and others
 * discard data that they read afterwards. A writer announces its write before it reads
 * the secret, and hiding waits for it.
 *
 * Threads: one thread at a time. */
#ifndef HVD_SHM_REACH_H
#define HVD_SHM_REACH_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/transport/shm/shm.h"

/* Returns true once all ranks of the node have tried to reach all others. The tries begin
 * when all have started. Every rank calls it until it returns true; its eventfd is
 * written when another call may make progress. */
bool hvd_shm_settle(struct hvd_shm *shm);

/* Whether every rank of the node can reach every other one; false before hvd_shm_settle
 * has returned true. */
bool hvd_shm_can_reach(const struct hvd_shm *shm);

/* Copy from or to an address in a local rank. Return 0; HVD_INPROGRESS if that rank has
 * died or hidden its memory, which the control tree reports; HVD_ERR_ARG if it has no
 * such memory; or HVD_ERR_SYS, logged. */
int hvd_shm_read(const struct hvd_shm *shm, int local_rank, uint64_t address, void *to,
                 size_t bytes);
int hvd_shm_write(struct hvd_shm *shm, int local_rank, uint64_t address, const void *from,
                  size_t bytes);

/* Hides this rank's memory: from now on no other rank reads or writes it. Call it after
 * the job has failed and the others have been told, but not while this rank itself
 * writes.
 *
 * Waits for ranks in the middle of a write: 3 s at most, not counting time in which this
 * rank did not run. A rank that is stopped there is not waited for: its write will fail,
 * because it starts with this rank's door, which is now closed. Returns false, logged, if
 * a write may still be under way in the kernel: then memory that was offered must not be
 * freed. */
bool hvd_shm_hide(struct hvd_shm *shm);

#endif
