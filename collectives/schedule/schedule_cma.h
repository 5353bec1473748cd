/* SPDX-License-Identifier: Apache-2.0 */
/* Single-copy allgather, alltoall and broadcast on one node: the steps that cma_read and
 * cma_write share. Private to collectives/schedule.
 *
 * A block moves in pieces, one a tick, so that other teams get their turn in between.
 * Every rank begins with a different peer or piece: the kernel pins each page that it
 * copies, and slows down when many ranks access the same pages at once. */
#ifndef HVD_SCHEDULE_CMA_H
#define HVD_SCHEDULE_CMA_H

#include "collectives/schedule/schedule_parts.h"
#include "collectives/schedule/schedule_state.h"

enum {
    HVD_CMA_SIGNALS = 2, /* signals of each rank in a schedule */
};

/* The direction in which blocks move. */
struct hvd_cma_blocks {
    /* ranks OFFER their output, for others to write; false: their input, to be read */
    bool is_output;
    /* Moves piece `number` of the block that another local rank has or wants. */
    void (*move)(struct hvd_schedule *schedule, int other, int64_t number);
};

/* Sets up an allgather or alltoall: OFFER; SIGNAL; COPY my own block; move the block of
 * each other rank once it has signalled; sync. */
void hvd_cma_blocks_set_up(struct hvd_schedule *schedule,
                           const struct hvd_cma_blocks *blocks);

/* Sets up a broadcast: all but the root FETCH the first `fetched` bytes, and the root
 * STOREs the rest to them. */
void hvd_cma_broadcast_set_up(struct hvd_schedule *schedule, int64_t fetched);

/* Returns the location in which `owner` stores an address for `other`: of the block that
 * `other` reads, or of the room into which it writes. An allgather has one such location
 * for all ranks, with the address of the owner's block or of its whole output. */
struct hvd_location hvd_cma_offer(const struct hvd_schedule *schedule, int owner,
                                  int other);

/* Return block [bounds[rank], bounds[rank + 1]) of a local rank, and a piece of it, which
 * may be empty. */
struct hvd_range hvd_cma_block(const struct hvd_schedule *schedule, const int64_t *bounds,
                               int local_rank);
struct hvd_range hvd_cma_piece(const struct hvd_schedule *schedule,
                               struct hvd_range whole, int64_t number);

#endif
