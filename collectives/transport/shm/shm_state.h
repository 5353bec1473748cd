/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the node's shared memory, used by the files shm*.c. */
#ifndef HVD_SHM_STATE_H
#define HVD_SHM_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectives/transport/shm/shm.h"
#include "collectives/transport/shm/shm_region.h"

/* A rank's line in the node's part. Each line has two cache lines: because of
 * adjacent-line prefetch, the writer of one line would otherwise slow down the readers of
 * the next. */
struct hvd_shm_line {
    _Alignas(128) _Atomic uint32_t asleep;
    /* The following members are used by shm_reach.c. */
    _Atomic uint32_t verdict;
    _Atomic int32_t pid; /* 0 until the members below are set */
    uint64_t secret;
    uint64_t secret_at; /* address of the secret in the rank's memory */
    /* address of the door in the rank's memory: see write_there in shm_reach.c */
    uint64_t door_at;
    _Atomic int32_t writer; /* the thread that sets writes_to */
    /* local rank + 1 while this rank may be writing to that rank, else 0 */
    _Atomic int32_t writes_to;
};

/* The part of the file for one region; it is reused. */
struct hvd_shm_extent {
    bool is_open;
    uint64_t uses; /* number of uses so far */
};

struct hvd_shm {
    int fd;
    int local_rank;
    bool says_asleep; /* the last announcement of this rank */
    struct hvd_shm_sizes sizes;
    const int *eventfds;
    struct hvd_shm_line
        *lines; /* [local rank], at the start of the node's part, mapped */
    size_t extra_at;
    size_t node_bytes;
    size_t regions_at; /* start of the regions, behind the reserved bytes */
    struct hvd_shm_extent *extents; /* [extent_count] */
    int extent_count;
    uint64_t secret; /* the other ranks read it in this rank's memory */
    char *door; /* a page, or NULL if memory ran out; shm_reach.c */
    /* the door stays mapped, because another rank may still write to it */
    bool is_door_kept;
    bool is_settled;
    bool can_reach;
};

/* introduce publishes how to reach this rank; take_leave undoes it (shm_reach.c). */
void hvd_shm_introduce(struct hvd_shm *shm);
void hvd_shm_take_leave(struct hvd_shm *shm);

/* Like hvd_shm_ring, for callers that wrote with sequentially consistent operations. */
void hvd_shm_ring_sleeper(struct hvd_shm *shm, int local_rank);

#endif
