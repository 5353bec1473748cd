/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks on one node by a single copy: a rank that wants a block reads it where it is, by
 * cross-memory attach.
 *
 *   allgather, alltoall
 *     OFFER my input; SIGNAL
 *     COPY my own block; FETCH those of the others, once each has signalled
 *     SIGNAL; WAIT until all have done so: then my input is mine again
 *
 *   broadcast
 *     root:    OFFER its input; SIGNAL; COPY to its own output; WAIT for all
 *     others:  FETCH, as soon as the root has signalled; SIGNAL */
#include "collectives/schedule/schedule_cma.h"
#include "collectives/schedule/schedule_steps.h"
#include "gpu_binding/base/attr.h"

static void fetch_piece(struct hvd_schedule *schedule, int owner, int64_t number)
{
    struct hvd_range block = hvd_cma_block(schedule, schedule->query.blocks, owner);
    struct hvd_range piece = hvd_cma_piece(schedule, block, number);

    hvd_emit_fetch(schedule, hvd_cma_offer(schedule, owner, schedule->local_rank),
                   piece.begin - block.begin, piece.begin, (size_t)piece.count);
}

int hvd_cma_read_set_up(struct hvd_schedule *schedule, struct hvd_error *err HVD_UNUSED)
{
    static const struct hvd_cma_blocks blocks = {false, fetch_piece};

    if (schedule->query.collective == HVD_COLL_BROADCAST) {
        hvd_cma_broadcast_set_up(schedule, schedule->query.bytes);
    } else {
        hvd_cma_blocks_set_up(schedule, &blocks);
    }
    return 0;
}
