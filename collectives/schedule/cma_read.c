/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcast, allgather and alltoall on one node with a single copy: the receiver reads a
 * block directly from the sender's memory, by cross-memory attach (process_vm_readv).
 *
 *   allgather, alltoall
 *     OFFER my input; SIGNAL
 *     COPY my own block; FETCH the block of each other rank once it has signalled
 *     SIGNAL; WAIT until all have signalled: then no rank reads my input any more
 *
 *   broadcast
 *     root:    OFFER its input; SIGNAL; COPY to its own output; WAIT for all
 *     others:  FETCH once the root has signalled; SIGNAL */
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
