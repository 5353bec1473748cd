/* SPDX-License-Identifier: Apache-2.0 */
/* A region of the node's memory: what one team needs, staging slots and counters.
 *
 *   region k   [ counter of rank 0 | ... ][ slots of rank 0 | slots of rank 1 | ... ]
 *
 * All ranks of a node open and close the same regions in the same order, also those that
 * take no part in the team, so that all give it the same place: the lowest that is free.
 * Places are used again; memory is not given back before the end.
 *
 * Counters only grow, through all uses of a place: the n-th use counts from n * 2^44. So
 * whoever still waits in a use that others have left is not held up, and a region is
 * ready when every counter of the node has come to its use: then nobody looks at what the
 * last use left.
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
 * own part is backed with memory, near the calling thread. Without memory fails with
 * HVD_ERR_NOMEM and a text for the user; then this node's regions cannot be used any
 * more. The caller ends *out with close. */
int hvd_shm_region_open(struct hvd_shm *shm, const int *members, int count,
                        struct hvd_shm_region **out, struct hvd_error *err);

/* When this rank has done all that it does with it; the others may still be at it. NULL
 * is fine. */
void hvd_shm_region_close(struct hvd_shm_region *region);

/* Whether all ranks of the node have opened it. Before, a member must not write slots. */
bool hvd_shm_region_is_ready(const struct hvd_shm_region *region);

/* The memory that it is part of. */
struct hvd_shm *hvd_shm_region_memory(const struct hvd_shm_region *region);

/* The value of every counter when the region was opened. */
uint64_t hvd_shm_region_base(const struct hvd_shm_region *region);

/* Slot memory of a member: IN, OUT or LINE. */
char *hvd_shm_region_slot(const struct hvd_shm_region *region,
                          enum hvd_location_kind kind, int local_rank, int slot);

/* Adds one to this rank's counter, with all writes before it visible to who reads it. */
void hvd_shm_region_signal(struct hvd_shm_region *region);

/* Rings the members that sleep, if this rank has signalled since the last time. To be
 * called before it does anything long or waits elsewhere; but not at once, when the
 * signal has to wait for all writes before it to leave the core: 0.1 us for 1 KiB that
 * another core has read. */
void hvd_shm_region_ring(struct hvd_shm_region *region);

uint64_t hvd_shm_region_counter(const struct hvd_shm_region *region, int local_rank);

/* Looks so often, at least once, whether the counter has come to value. */
bool hvd_shm_region_await(const struct hvd_shm_region *region, int local_rank,
                          uint64_t value, int looks);

#endif
