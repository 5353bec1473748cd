/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelined copy-in-copy-out (CICO) broadcast on one node: the root fills slots of shared
 * memory ahead of the readers.
 *
 *   root:    WAIT until all have read the old chunk in the slot; PUT a chunk; SIGNAL
 *            COPY it to its own output
 *   others:  WAIT for the root; GET; SIGNAL
 *
 * Every rank signals once a chunk, and counters keep counting in the next broadcast. So
 * the next root, too, waits only until the slot that it fills has been read. The smallest
 * broadcasts of two ranks go through LINE. More ranks use the slots: there are twice as
 * many of them as LINEs, so the root can run further ahead, which matters more if there
 * are more ranks than CPUs. */
#include "collectives/schedule/schedule_parts.h"
#include "collectives/schedule/schedule_steps.h"
#include "gpu_binding/base/attr.h"

enum {
    LL_BUFFERS = 2,
};

static struct hvd_range chunk_of(const struct hvd_schedule *schedule, int64_t number)
{
    int64_t bytes = schedule->setup.broadcast.chunk_bytes;
    struct hvd_range all = {0, schedule->query.bytes};

    return hvd_range_common(all, (struct hvd_range){number * bytes, bytes});
}

static bool is_ll(const struct hvd_schedule *schedule)
{
    return schedule->query.bytes <= HVD_LINE_BYTES && schedule->local_size <= 2;
}

static void emit_rolling(struct hvd_schedule *schedule, int64_t tick)
{
    int slots = is_ll(schedule) ? LL_BUFFERS : schedule->query.geometry.slots;
    int root = schedule->setup.broadcast.owner;
    struct hvd_range chunk = chunk_of(schedule, tick);
    struct hvd_location location =
        hvd_location_of(is_ll(schedule) ? HVD_LOCATION_LINE : HVD_LOCATION_IN, root,
                        (int)(tick % slots), 0);

    if (schedule->local_rank == root) {
        hvd_emit_wait_all(schedule, (uint64_t)(tick + 1 - slots));
        if (schedule->local_size > 1) {
            hvd_emit_put(schedule, chunk.begin, (size_t)chunk.count, location);
        }
        hvd_emit_signal(schedule);
        hvd_emit_copy(schedule, chunk.begin, chunk.begin, (size_t)chunk.count);
    } else {
        hvd_emit_wait(schedule, root, (uint64_t)tick + 1);
        hvd_emit_get(schedule, location, chunk.begin, (size_t)chunk.count);
        hvd_emit_signal(schedule);
    }
}

int hvd_rolling_set_up(struct hvd_schedule *schedule, struct hvd_error *err HVD_UNUSED)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_broadcast_setup *setup = &schedule->setup.broadcast;

    setup->owner = query->layout->local_rank[query->root];
    setup->parent = -1;
    setup->chunks = hvd_chunk_count(query->bytes, 1, (int64_t)query->geometry.slot_bytes,
                                    HVD_LEAST_CHUNK_BYTES,
                                    is_ll(schedule) ? 0 : schedule->choice.chunk_bytes);
    setup->chunk_bytes =
        setup->chunks > 0 ? hvd_divide_up(query->bytes, setup->chunks) : 0;
    schedule->emit = emit_rolling;
    schedule->facts.ticks = setup->chunks;
    schedule->facts.signals = (uint64_t)setup->chunks;
    schedule->facts.turns = setup->chunks;
    schedule->facts.is_rolling = true;
    schedule->step_capacity = 4;
    return 0;
}
