/* SPDX-License-Identifier: Apache-2.0 */
/* A region of the node's memory: staging slots and counters for one team.
 *
 *   region k   [ counter of rank 0 | ... ][ slots of rank 0 | slots of rank 1 | ... ]
 *
 * All ranks of a node open and close the same regions in the same order, including ranks
 * that are not in the team, so that all give a region the same extent: the lowest that is
 * free. Extents are reused; memory is not freed before the end.
 *
 * Counters only grow, across all uses of an extent: the n-th use counts from n * 2^44.
 * So a rank that still waits in a use that others have left sees a larger value and goes
 * on. A region is ready when every counter of the node has reached its use: from then on
 * no rank reads data that an earlier use left behind.
 *
 * Each rank writes only its own slots and its own counter.
 *
 * Threads: the counters are atomic; everything else is for one thread at a time. */
#ifndef HVD_SHM_REGION_H
#define HVD_SHM_REGION_H

#include <stdint.h>

#include "collectives/transport/shm/shm.h"

struct hvd_shm_region;

/* Opens the next region. members: ascending local ranks that use it (copied). A member's
 * own part is backed with memory near the calling thread. If memory runs out, returns
 * HVD_ERR_NOMEM and a text for the user; then no region of this node can be used any
 * more. The caller ends *out with close. */
int hvd_shm_region_open(struct hvd_shm *shm, const int *members, int count,
                        struct hvd_shm_region **out, struct hvd_error *err);

/* Call it when this rank is done with the region; other ranks may still use it. NULL is
 * allowed. */
void hvd_shm_region_close(struct hvd_shm_region *region);

/* Whether all ranks of the node have opened it. A member must not write to slots before
 * that. */
bool hvd_shm_region_is_ready(const struct hvd_shm_region *region);

/* Returns the memory that the region is part of. */
struct hvd_shm *hvd_shm_region_memory(const struct hvd_shm_region *region);

/* Returns the value that every counter has at the start of this use of the extent. */
uint64_t hvd_shm_region_base(const struct hvd_shm_region *region);

/* Returns the memory of a member's slot: IN, OUT or LINE. */
char *hvd_shm_region_slot(const struct hvd_shm_region *region,
                          enum hvd_location_kind kind, int local_rank, int slot);

/* Adds one to this rank's counter. Ranks that read the new value see all earlier writes
 * of this rank. */
void hvd_shm_region_signal(struct hvd_shm_region *region);

/* Wakes the members that sleep, if this rank has signalled since the last call. Call it
 * before anything that takes long, and before waiting elsewhere; but not right after a
 * signal, because it waits until all earlier writes have left the core: 0.1 us for 1 KiB
 * that another core has read. */
void hvd_shm_region_ring(struct hvd_shm_region *region);

uint64_t hvd_shm_region_counter(const struct hvd_shm_region *region, int local_rank);

/* Checks at most `looks` times, at least once, whether the counter has reached value. */
bool hvd_shm_region_await(const struct hvd_shm_region *region, int local_rank,
                          uint64_t value, int looks);

#endif
