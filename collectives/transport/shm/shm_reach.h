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

/* Whether all ranks of the node have reported which ranks they can reach; tries the
 * others once all are there. Every rank calls it until it returns true; its eventfd is
 * written when a call may make progress. */
bool hvd_shm_settle(struct hvd_shm *shm);

/* Whether every rank of the node can reach every other one; false before hvd_shm_settle
 * has returned true. */
bool hvd_shm_can_reach(const struct hvd_shm *shm);

/* Copy from or to an address in a local rank. Return 0; HVD_INPROGRESS if the rank has
 * died or hidden its memory, which is reported elsewhere; HVD_ERR_ARG if it has no such
 * memory; HVD_ERR_SYS, logged. */
int hvd_shm_read(const struct hvd_shm *shm, int local_rank, uint64_t address, void *to,
                 size_t bytes);
int hvd_shm_write(struct hvd_shm *shm, int local_rank, uint64_t address, const void *from,
                  size_t bytes);

/* Hides this rank's memory, after the job has failed and the others have been told: from
 * now on no other rank reads or writes it. Waits for ranks in the middle of a write, but
 * not for a rank that is stopped there: its write starts with this rank's door, which is
 * closed now. Waits 3 s at most, not counting time in which this rank did not run.
 * Returns false, logged, if a write may still be under way in the kernel: then memory
 * that was offered must not be freed. Must not be called while this rank itself writes.
 */
bool hvd_shm_hide(struct hvd_shm *shm);

#endif
