/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the ranks of a node share, and how one of them wakes another.
 *
 * It is a memfd: it has no name, lives as long as a rank maps it, and cannot be left
 * behind. The node's leader creates it and hands the descriptor over. It begins with the
 * node's part, which exists once:
 *
 *   asleep   per rank: 1 while it sleeps and wants its eventfd (an eventfd) rung
 *   who      per rank: how the others reach its memory (shm_reach.h)
 *   extra    bytes for another use, zero at first
 *
 * What is reserved for another use, without memory until it is mapped, and regions follow
 * (shm_region.h), as many as there are teams at a time.
 *
 * Threads: asleep and ring are for any thread; everything else for one thread at a
 * time. */
#ifndef HVD_SHM_H
#define HVD_SHM_H

#include <stdbool.h>
#include <stddef.h>

#include "collectives/transport/shm/locations.h"
#include "gpu_binding/base/error.h"

struct hvd_shm;

/* How large things are; the same on all ranks of a node. */
struct hvd_shm_sizes {
    int local_size;
    size_t extra_bytes;
    size_t reserved_bytes; /* behind the node's part, on a page: hvd_shm_map_reserved */
    struct hvd_geometry geometry; /* of every region */
    bool reaches; /* this rank may reach for the others' memory; need not be the same */
};

/* New memory, the node's part backed. Returns its descriptor, which the caller owns, or a
 * negative status. */
int hvd_shm_open(const struct hvd_shm_sizes *sizes, struct hvd_error *err);

/* Maps the node's part. Takes fd over, whatever comes of it; a forked child does not keep
 * it. eventfds: [local_size] eventfds, the caller's, kept until destroy; that of this
 * rank is not used. The caller owns *out. */
int hvd_shm_create(int fd, int local_rank, const struct hvd_shm_sizes *sizes,
                   const int *eventfds, struct hvd_shm **out, struct hvd_error *err);

/* When all regions are closed. NULL is fine. */
void hvd_shm_destroy(struct hvd_shm *shm);

/* Where the extra bytes begin, on a page. */
char *hvd_shm_extra(const struct hvd_shm *shm);

/* Backs and maps some of what is reserved, zero at first; whoever maps it sees the same.
 * Whole pages. The caller unmaps *out. */
int hvd_shm_map_reserved(struct hvd_shm *shm, size_t at, size_t bytes, char **out,
                         struct hvd_error *err);

/* Says that this rank is about to sleep (then it must look once more at what others write
 * before it does), or that it is awake. Returns true when somebody rings the eventfd
 * because of what it said before: one number will have been written to it, now or a
 * little later. */
bool hvd_shm_set_asleep(struct hvd_shm *shm, bool asleep);

/* Rings the eventfd of a local rank if it sleeps. What this rank wrote before, and which
 * the other looks at before it sleeps, is seen by it or wakes it. */
void hvd_shm_ring(struct hvd_shm *shm, int local_rank);

#endif
