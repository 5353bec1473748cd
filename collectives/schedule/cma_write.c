/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcast, allgather and alltoall on one node with a single copy: the sender writes a
 * block directly into the receiver's memory, by cross-memory attach (process_vm_writev).
 *
 *   allgather, alltoall
 *     OFFER my output; SIGNAL
 *     COPY my own block; STORE the block for each other rank once it has signalled
 *     SIGNAL; WAIT until all have signalled: then my output is complete
 *
 *   broadcast among n ranks; so that the root is not idle, it STOREs the last n-th of the
 *   data to each other rank while the others FETCH the rest
 *     root:    OFFER its input; SIGNAL; STORE once a rank has signalled; SIGNAL
 *              COPY to its own output; WAIT for all
 *     others:  OFFER their output; SIGNAL; FETCH once the root has signalled; SIGNAL
 *              WAIT for the root */
#include "collectives/schedule/schedule_cma.h"
#include "collectives/schedule/schedule_steps.h"
#include "gpu_binding/base/attr.h"

enum {
    ALIGNMENT = 64,
};

static void store_gathered(struct hvd_schedule *schedule, int other, int64_t number)
{
    struct hvd_range block =
        hvd_cma_block(schedule, schedule->query.blocks, schedule->local_rank);
    struct hvd_range piece = hvd_cma_piece(schedule, block, number);

    hvd_emit_store(schedule, hvd_cma_offer(schedule, other, schedule->local_rank),
                   piece.begin, piece.begin - block.begin, (size_t)piece.count);
}

static void store_block(struct hvd_schedule *schedule, int other, int64_t number)
{
    struct hvd_range block = hvd_cma_block(schedule, schedule->query.send, other);
    struct hvd_range piece = hvd_cma_piece(schedule, block, number);

    hvd_emit_store(schedule, hvd_cma_offer(schedule, other, schedule->local_rank),
                   piece.begin - block.begin, piece.begin, (size_t)piece.count);
}

int hvd_cma_write_set_up(struct hvd_schedule *schedule, struct hvd_error *err HVD_UNUSED)
{
    static const struct hvd_cma_blocks gathered = {true, store_gathered};
    static const struct hvd_cma_blocks blocks = {true, store_block};
    const struct hvd_schedule_query *query = &schedule->query;
    int64_t stored = query->bytes / schedule->local_size / ALIGNMENT * ALIGNMENT;

    if (query->collective == HVD_COLL_BROADCAST) {
        hvd_cma_broadcast_set_up(schedule, query->bytes - stored);
    } else {
        hvd_cma_blocks_set_up(
            schedule, query->collective == HVD_COLL_ALLGATHER ? &gathered : &blocks);
    }
    return 0;
}
