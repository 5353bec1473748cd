/* SPDX-License-Identifier: Apache-2.0 */
/* Sums on one node of tensors that lie, in place, where all ranks map them: each rank
 * adds up its share of all, where it is.
 *
 *   OFFER_SHARED: where my tensors are; SIGNAL; WAIT until all have done so
 *   piece by piece of my share: REDUCE_SHARED
 *   SIGNAL; WAIT until all have done so: then my tensors are complete
 *
 * Nothing is packed, copied or fetched: every byte is read and written once. A batch of
 * many tensors is one of these, too. */
#include "collectives/execute/schedule_state.h"
#include "collectives/execute/parts.h"
#include "collectives/execute/schedule_steps.h"
#include "gpu_binding/base/attr.h"

enum {
    SIGNALS = 2,
};

static struct hvd_place offer_of(int local_rank)
{
    return hvd_place_of(HVD_PLACE_IN, local_rank, 0, 0);
}

bool hvd_shared_sum_fits(const struct hvd_schedule *schedule)
{
    const struct hvd_schedule_query *query = &schedule->query;
    int64_t bytes = query->count * (int64_t)query->element_bytes;

    return query->shared_tensors > 0 && query->count > 0 &&
           query->collective == HVD_COLL_ALLREDUCE && query->layout->nodes == 1 &&
           schedule->local_size > 1 && bytes >= (int64_t)query->geometry.shared_bytes &&
           query->shared_tensors <=
               (int64_t)(query->geometry.slot_bytes / HVD_SHARED_OFFER_BYTES);
}

static struct hvd_range piece_of(const struct hvd_schedule *schedule, int64_t number)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_range share = hvd_part_of((struct hvd_range){0, query->count},
                                         schedule->local_size, schedule->local_rank);
    int64_t most = schedule->setup.single_sum.piece_elements;

    return hvd_range_common(share, (struct hvd_range){share.begin + number * most, most});
}

static void emit(struct hvd_schedule *schedule, int64_t tick)
{
    struct hvd_range piece = piece_of(schedule, tick);

    if (tick == 0) {
        hvd_emit_wait_all(schedule, 0);
        hvd_emit_offer_shared(schedule, offer_of(schedule->local_rank));
        hvd_emit_sync(schedule);
    }
    hvd_emit_reduce_shared(schedule, offer_of(0),
                           piece.begin * (int64_t)schedule->query.element_bytes,
                           (size_t)piece.count);
    if (tick == schedule->facts.ticks - 1) {
        hvd_emit_sync(schedule);
    }
}

int hvd_shared_sum_set_up(struct hvd_schedule *schedule, struct hvd_error *err HVD_UNUSED)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_single_sum_setup *setup = &schedule->setup.single_sum;
    int64_t most = hvd_part_most(query->count, schedule->local_size);

    setup->piece_elements = (int64_t)(query->geometry.slot_bytes / query->element_bytes);
    setup->pieces = hvd_divide_up(most, setup->piece_elements);
    schedule->facts.name = "shared sum";
    schedule->emit = emit;
    schedule->facts.ticks = setup->pieces;
    schedule->facts.signals = SIGNALS;
    schedule->step_capacity = 8;
    return 0;
}
