/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the ranks of a node share, and how one of them wakes another.
 *
 * It is a memfd: it has no name, lives as long as a rank maps it, and cannot be left
 * behind. The node's leader creates it and passes the descriptor on. It begins with the
 * node's part, which exists once:
 *
 *   asleep   per rank: 1 while it sleeps and wants its eventfd written
 *   who      per rank: how the others reach its memory (shm_reach.h)
 *   extra    bytes for another use, zero at first
 *
 * Behind it are reserved bytes for another use, which use no memory until they are
 * mapped, and regions (shm_region.h), as many as there are teams at a time.
 *
 * Threads: asleep and ring are for any thread; everything else for one thread at a time.
 */
#ifndef HVD_SHM_H
#define HVD_SHM_H

#include <stdbool.h>
#include <stddef.h>

#include "collectives/transport/shm/locations.h"
#include "gpu_binding/base/error.h"

struct hvd_shm;

/* Sizes; the same on all ranks of a node. */
struct hvd_shm_sizes {
    int local_size;
    size_t extra_bytes;
    /* behind the node's part, starting on a page: hvd_shm_map_reserved */
    size_t reserved_bytes;
    struct hvd_geometry geometry; /* that of every region */
    bool reaches; /* this rank may access the others' memory; may differ between ranks */
};

/* Creates the memory and backs the node's part. Returns its descriptor, which the caller
 * owns, or a negative status. */
int hvd_shm_open(const struct hvd_shm_sizes *sizes, struct hvd_error *err);

/* Maps the node's part. Takes over fd in every case; a forked child does not keep it.
 * eventfds: [local_size] owned by the caller, used until destroy; the one of this rank is
 * not used. The caller owns *out. */
int hvd_shm_create(int fd, int local_rank, const struct hvd_shm_sizes *sizes,
                   const int *eventfds, struct hvd_shm **out, struct hvd_error *err);

/* Call it after all regions are closed. NULL is fine. */
void hvd_shm_destroy(struct hvd_shm *shm);

/* The extra bytes, which start on a page. */
char *hvd_shm_extra(const struct hvd_shm *shm);

/* Backs and maps a part of the reserved bytes, zero at first and shared by all that map
 * it. Whole pages. The caller unmaps *out. */
int hvd_shm_map_reserved(struct hvd_shm *shm, size_t at, size_t bytes, char **out,
                         struct hvd_error *err);

/* Says that this rank is about to sleep, after which it must check the others' writes
 * once more before it does, or that it is awake. Returns true if somebody has rung the
 * eventfd because of what it said before: a number has been or is about to be written to
 * it. */
bool hvd_shm_set_asleep(struct hvd_shm *shm, bool asleep);

/* Rings the eventfd of a local rank if it sleeps. Whatever this rank wrote before, and
 * the other checks before it sleeps, is either seen by the other or wakes it. */
void hvd_shm_ring(struct hvd_shm *shm, int local_rank);

#endif
