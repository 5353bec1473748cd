/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks and broadcasts on one node by a single copy: what cma_read and cma_write share.
 * Private to collectives/schedule.
 *
 * Blocks go in pieces, one tick each, so that other teams get their turn in between. All
 * ranks begin with another peer or piece, so that no memory is read by all at once: the
 * kernel takes hold of each page. */
#ifndef HVD_SCHEDULE_CMA_H
#define HVD_SCHEDULE_CMA_H

#include "collectives/schedule/schedule_parts.h"
#include "collectives/schedule/schedule_state.h"

enum {
    HVD_CMA_SIGNALS = 2, /* of each rank */
};

/* How blocks move. */
struct hvd_cma_blocks {
    bool is_output; /* ranks offer their output to writers, not their input to readers */
    /* Moves piece `number` of the block for or of another local rank. */
    void (*move)(struct hvd_schedule *schedule, int other, int64_t number);
};

/* Sets up an allgather or alltoall of my blocks: OFFER; SIGNAL; COPY my own; move the
 * others, once each has signalled; sync. */
void hvd_cma_blocks_set_up(struct hvd_schedule *schedule,
                           const struct hvd_cma_blocks *blocks);

/* Sets up a broadcast: all but the root FETCH the first `fetched` bytes, and the root
 * STOREs the rest to them. */
void hvd_cma_broadcast_set_up(struct hvd_schedule *schedule, int64_t fetched);

/* Where a local rank leaves for another one the address of a block, or of room for it. An
 * allgather's is the same for all: that of the block, or of the whole output. */
struct hvd_location hvd_cma_offer(const struct hvd_schedule *schedule, int owner,
                                  int other);

/* Piece `number` of block [bounds[rank], bounds[rank + 1]) of a local rank; may be
 * empty. */
struct hvd_range hvd_cma_block(const struct hvd_schedule *schedule, const int64_t *bounds,
                               int local_rank);
struct hvd_range hvd_cma_piece(const struct hvd_schedule *schedule,
                               struct hvd_range whole, int64_t number);

#endif
