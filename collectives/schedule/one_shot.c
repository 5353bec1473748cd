/* SPDX-License-Identifier: Apache-2.0 */
/* One-shot allreduce and reducescatter on one node: every rank reduces all elements that
 * it needs, from the inputs of all ranks.
 *
 *   each tick   PUT my chunk into IN; sync; reduce all ranks' IN -> output
 *
 * This needs one sync a chunk, where two_shot.c needs two. The schedule stays open: the
 * sync also tells that all ranks have read the previous chunk. A rank does not pack input
 * that no other rank needs. */
#include "collectives/schedule/schedule_slices.h"
#include "collectives/schedule/schedule_steps.h"
#include "gpu_binding/base/attr.h"

enum {
    STEPS = 8, /* the most steps of a tick */
};

static void emit_one_shot(struct hvd_schedule *schedule, int64_t tick)
{
    struct hvd_chunk chunk = hvd_slices_chunk(schedule, tick);
    struct hvd_range want = hvd_schedule_wanted(schedule);
    struct hvd_range mine = hvd_range_common(chunk.elements, want);
    int64_t bytes = (int64_t)schedule->query.element_bytes;
    struct hvd_location in = {.kind = HVD_LOCATION_IN};

    if (tick == 0) {
        hvd_emit_wait_all(schedule, 0);
    }
    if (schedule->local_size > 1 && !hvd_schedule_is_unread(schedule)) {
        hvd_slices_pack(schedule, &chunk, chunk.elements);
    }
    hvd_emit_sync(schedule);
    hvd_emit_reduce_out(schedule, hvd_slices_location(schedule, &chunk, in, mine.begin),
                        mine.begin * bytes, (size_t)mine.count,
                        (mine.begin - want.begin) * bytes);
}

int hvd_one_shot_set_up(struct hvd_schedule *schedule, struct hvd_error *err HVD_UNUSED)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_slices_setup *setup = &schedule->setup.slices;

    hvd_slices_cut(schedule,
                   (int64_t)(query->geometry.slot_bytes / query->element_bytes));
    schedule->emit = emit_one_shot;
    schedule->facts.ticks = setup->chunks;
    schedule->facts.signals = (uint64_t)setup->chunks;
    schedule->facts.turns = setup->chunks;
    schedule->step_capacity = STEPS;
    return 0;
}
