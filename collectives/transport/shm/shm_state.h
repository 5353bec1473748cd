/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the node's shared memory, shared by the files shm*.c. */
#ifndef HVD_SHM_STATE_H
#define HVD_SHM_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectives/transport/shm/shm.h"
#include "collectives/transport/shm/shm_region.h"

/* A rank's place in the node's part. Two cache lines each: adjacent-line prefetch would
 * make one line's writer disturb the reader of the next. */
struct hvd_shm_line {
    _Alignas(128) _Atomic uint32_t asleep;
    /* shm_reach.c: */
    _Atomic uint32_t verdict;
    _Atomic int32_t pid; /* 0: what follows is not there yet */
    uint64_t secret;
    uint64_t secret_at; /* address in the rank */
    /* address in the rank: a byte that is written before anything else */
    uint64_t door_at;
    _Atomic int32_t writer; /* the thread that sets writes_to */
    _Atomic int32_t
        writes_to; /* local rank + 1 while this rank may write there; else 0 */
};

/* One place for a region in the file, used again and again. */
struct hvd_shm_extent {
    bool is_open;
    uint64_t uses; /* so far */
};

struct hvd_shm {
    int fd;
    int local_rank;
    bool says_asleep; /* this rank, last */
    struct hvd_shm_sizes sizes;
    const int *eventfds;
    char *node; /* the node's part, mapped */
    size_t extra_at;
    size_t node_bytes;
    size_t regions_at; /* where they begin; before them is what is reserved */
    struct hvd_shm_extent *extents; /* [extent_count] */
    int extent_count;
    uint64_t secret; /* the others read it where it is */
    char *door; /* a page, NULL without memory; shm_reach.c */
    bool is_door_kept; /* somebody may still try it */
    bool is_settled;
    bool can_reach;
};

/* The line of a local rank (shm_line.c). */
struct hvd_shm_line *hvd_shm_line_of(const struct hvd_shm *shm, int local_rank);

/* Tells the others who this rank is; take_leave undoes it (shm_reach.c). */
void hvd_shm_introduce(struct hvd_shm *shm);
void hvd_shm_take_leave(struct hvd_shm *shm);

/* As hvd_shm_ring, for a caller that wrote with sequentially consistent operations. */
void hvd_shm_ring_sleeper(struct hvd_shm *shm, int local_rank);

#endif
