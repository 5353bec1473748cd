/* SPDX-License-Identifier: Apache-2.0 */
/* Two-shot allreduce and reducescatter on one node: a reduce-scatter, then an allgather.
 *
 *   tick 0   PUT my chunk into IN; sync; reduce my slice of all ranks' IN -> my OUT
 *   tick 1   sync; GET all slices from the ranks' OUT
 *
 * Each element is reduced by one rank only, so with many ranks this is faster than
 * one_shot.c, which has one sync less. */
#include "collectives/schedule/schedule_slices.h"
#include "collectives/schedule/schedule_steps.h"

static void advance_two_shot(struct hvd_schedule *schedule, int64_t tick)
{
    struct hvd_chunk chunk = hvd_slices_chunk(schedule, tick);
    struct hvd_location in = {.kind = HVD_LOCATION_IN};
    struct hvd_range mine;

    if (!hvd_slices_has_chunk(schedule, tick)) {
        return;
    }
    mine =
        hvd_part_of(chunk.elements, schedule->setup.slices.slices, schedule->local_rank);
    hvd_emit_reduce_local(schedule, hvd_slices_location(schedule, &chunk, in, mine.begin),
                          mine.begin * (int64_t)schedule->query.element_bytes,
                          (size_t)mine.count,
                          hvd_slices_out(schedule, &chunk, mine.begin));
}

int hvd_two_shot_set_up(struct hvd_schedule *schedule, struct hvd_error *err)
{
    static const struct hvd_slice_ops ops = {.advance = advance_two_shot};

    schedule->setup.slices.get_lag = 1;
    return hvd_slices_set_up(schedule, &ops, err);
}
