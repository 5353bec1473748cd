/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the ranks of a node share, and the flags with which they wake each
 * other.
 *
 * It is a memfd: it has no name, lives as long as a rank maps it, and cannot be left
 * behind. The node's leader creates it and passes the descriptor on. It begins with the
 * node's part, which exists once:
 *
 *   line     per rank: whether it sleeps and wants its eventfd written, and how other
 *            ranks reach its memory (shm_reach.h)
 *   extra    bytes for another use, zeroed at first
 *
 * Behind it are reserved bytes for another use, which use no memory until they are
 * mapped, and regions (shm_region.h), as many as there are teams at a time.
 *
 * Threads: hvd_shm_set_asleep and hvd_shm_ring may be called by any thread; everything
 * else by one thread at a time. */
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
    /* bytes behind the node's part, starting on a page: hvd_shm_map_reserved */
    size_t reserved_bytes;
    struct hvd_geometry geometry; /* the geometry of every region */
    bool reaches; /* this rank may access the others' memory; may differ between ranks */
};

/* Creates the memory and backs the node's part. Returns its descriptor, which the caller
 * owns, or a negative status. */
int hvd_shm_open(const struct hvd_shm_sizes *sizes, struct hvd_error *err);

/* Maps the node's part. Takes over fd in every case; a forked child does not keep it.
 * eventfds: [local_size], owned by the caller and used until destroy; the one of this
 * rank is not used. The caller owns *out. */
int hvd_shm_create(int fd, int local_rank, const struct hvd_shm_sizes *sizes,
                   const int *eventfds, struct hvd_shm **out, struct hvd_error *err);

/* Call it after all regions are closed. NULL is allowed. */
void hvd_shm_destroy(struct hvd_shm *shm);

/* Returns the extra bytes, which start on a page. */
char *hvd_shm_extra(const struct hvd_shm *shm);

/* Backs and maps a part of the reserved bytes, in whole pages, zeroed at first and shared
 * by all ranks that map it. The caller unmaps *out. */
int hvd_shm_map_reserved(struct hvd_shm *shm, size_t at, size_t bytes, char **out,
                         struct hvd_error *err);

/* Announces that this rank is about to sleep, or that it is awake. Before it sleeps, it
 * must check the other ranks' writes once more after this call. Returns true if another
 * rank has reacted to the previous announcement: a number has been or is about to be
 * written to the eventfd. */
bool hvd_shm_set_asleep(struct hvd_shm *shm, bool asleep);

/* Writes to the eventfd of a local rank if it sleeps. If this rank wrote something
 * before, and the other rank checks it before it sleeps, then the other rank either sees
 * the write or is woken. */
void hvd_shm_ring(struct hvd_shm *shm, int local_rank);

#endif
