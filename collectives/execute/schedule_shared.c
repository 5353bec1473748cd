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
#include "collectives/execute/schedule_internal.h"
#include "collectives/execute/schedule_ranks.h"
#include "collectives/execute/schedule_steps.h"

enum {
    SIGNALS = 2,
};

static struct hvd_place offer_of(int local_rank)
{
    return hvd_place_of(HVD_PLACE_IN, local_rank, 0, 0);
}

bool hvd_schedule_is_shared_sum(const struct hvd_schedule *schedule)
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
    int64_t most = schedule->plan.sum.piece_elements;

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
    if (tick == schedule->ticks - 1) {
        hvd_emit_sync(schedule);
    }
}

int hvd_schedule_plan_shared_sum(struct hvd_schedule *schedule)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_sum_plan *plan = &schedule->plan.sum;
    int64_t most = hvd_part_most(query->count, schedule->local_size);

    plan->piece_elements = (int64_t)(query->geometry.slot_bytes / query->element_bytes);
    plan->pieces = hvd_divide_up(most, plan->piece_elements);
    schedule->name = "shared sum";
    schedule->emit = emit;
    schedule->ticks = plan->pieces;
    schedule->signals = SIGNALS;
    schedule->step_capacity = 8;
    return 0;
}
