/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces of shared memory of the node's other ranks (shared.h), mapped here.
 *
 * A piece is mapped when a rank first says that something lies in it, through the owner's
 * descriptor in /proc; what was mapped stays until so many others have been that it has
 * to make room. Whoever writes there says so first, so that a rank whose job has failed
 * gets its memory back untouched: hvd_shm_hide waits for it.
 *
 * Threads: one thread at a time. */
#ifndef HVD_SHARED_PEERS_H
#define HVD_SHARED_PEERS_H

#include "collectives/transport/shm/shared.h"
#include "collectives/transport/shm/shm.h"

/* Whether this rank can map what a local rank shares, by trying what is there for sure: the node's
 * memory, once the rank has said who it is. */
bool hvd_shared_can_map(const struct hvd_shm *shm, int local_rank);

/* Where the `bytes` from a local rank's place on are in this process; *out stays good until the next
 * call for the same rank. Returns 0; HVD_INPROGRESS when the rank has died or has hidden, which
 * others will tell; HVD_ERR_SYS, logged: also if the bytes are not all in the piece. */
int hvd_shared_map(struct hvd_shm *shm, int local_rank,
                   const struct hvd_shared_place *place, size_t bytes, char **out);

/* Between the two this rank may write to the shared memory of all local ranks, and asks again now
 * and then: one that hides waits for so long. False: one has hidden, and nothing is to be written. */
bool hvd_shared_begin_stores(struct hvd_shm *shm);
bool hvd_shared_may_store(const struct hvd_shm *shm);
void hvd_shared_end_stores(struct hvd_shm *shm);

void hvd_shared_unmap(struct hvd_shm *shm); /* all */

#endif
