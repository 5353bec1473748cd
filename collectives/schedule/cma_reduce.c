/* SPDX-License-Identifier: Apache-2.0 */
/* Two-shot by cross-memory attach, for large sums on one node. Each rank reads its share
 * of all inputs directly from the ranks' memory (process_vm_readv) and reduces it; the
 * others read the result from its output.
 *
 *   OFFER my input and my output; SIGNAL
 *   for each piece of my share: FETCH_REDUCE it into my output; SIGNAL
 *   for each piece of other shares: WAIT for the owner's signal; FETCH from its output
 *   SIGNAL; WAIT until all have signalled: then no rank reads my memory any more
 *
 * In a reducescatter my share is the part that I want, so there is nothing to fetch. The
 * output may be the input: only the owner of a share reads that share of my input, and I
 * write there only after its signal, which comes after its read.
 *
 * With two ranks each rank writes three quarters as many bytes as in one_shot, where it
 * packs its whole input and reduces everything. */
#include "collectives/schedule/schedule_state.h"
#include "collectives/schedule/schedule_parts.h"
#include "collectives/schedule/schedule_steps.h"
#include "gpu_binding/base/attr.h"

enum {
    ALIGNMENT = 64,
};

/* Returns how many elements a piece may have, so that one piece from each other rank fits
 * my slot. */
static int64_t piece_elements(const struct hvd_schedule *schedule)
{
    const struct hvd_schedule_query *query = &schedule->query;
    size_t others = (size_t)schedule->local_size - 1;
    size_t bytes = query->geometry.slot_bytes / others / ALIGNMENT * ALIGNMENT;

    return (int64_t)(bytes / query->element_bytes);
}

bool hvd_cma_reduce_fits(const struct hvd_schedule *schedule)
{
    const struct hvd_schedule_query *query = &schedule->query;

    return hvd_cma_fits(schedule, query->count * (int64_t)query->element_bytes) &&
           piece_elements(schedule) > 0;
}

static bool is_scatter(const struct hvd_schedule *schedule)
{
    return schedule->query.collective == HVD_COLL_REDUCESCATTER;
}

static struct hvd_range share_of(const struct hvd_schedule *schedule, int local_rank)
{
    const struct hvd_schedule_query *query = &schedule->query;

    return is_scatter(schedule) ? (struct hvd_range){query->part_begin, query->part_count}
                                : hvd_part_of((struct hvd_range){0, query->count},
                                              schedule->local_size, local_rank);
}

static struct hvd_range piece_of(const struct hvd_schedule *schedule, int local_rank,
                                 int64_t number)
{
    struct hvd_range share = share_of(schedule, local_rank);
    int64_t most = schedule->setup.cma_reduce.piece_elements;

    return hvd_range_common(share, (struct hvd_range){share.begin + number * most, most});
}

static struct hvd_location offer_of(int local_rank, bool is_output)
{
    return hvd_location_of(HVD_LOCATION_LINE, local_rank, 0,
                           is_output ? sizeof(uint64_t) : 0);
}

static void offer_input(struct hvd_schedule *schedule)
{
    const struct hvd_schedule_query *query = &schedule->query;
    size_t bytes = (size_t)query->count * query->element_bytes;
    int me = schedule->local_rank;

    hvd_emit_wait_all(schedule, 0);
    hvd_emit_offer(schedule, false, 0, bytes, offer_of(me, false));
    if (!is_scatter(schedule)) {
        hvd_emit_offer(schedule, true, 0, bytes, offer_of(me, true));
    }
    hvd_emit_sync(schedule);
}

static void reduce_piece(struct hvd_schedule *schedule, int64_t number)
{
    int64_t bytes = (int64_t)schedule->query.element_bytes;
    struct hvd_range piece = piece_of(schedule, schedule->local_rank, number);
    int64_t output =
        is_scatter(schedule) ? piece.begin - schedule->query.part_begin : piece.begin;
    struct hvd_location scratch =
        hvd_location_of(HVD_LOCATION_IN, schedule->local_rank, 0, 0);

    hvd_emit_fetch_reduce(schedule, offer_of(0, false), piece.begin * bytes,
                          (size_t)piece.count, output * bytes, scratch);
    if (!is_scatter(schedule)) {
        hvd_emit_signal(schedule);
    }
}

static void fetch_piece(struct hvd_schedule *schedule, int owner, int64_t number)
{
    int64_t bytes = (int64_t)schedule->query.element_bytes;
    struct hvd_range piece = piece_of(schedule, owner, number);

    hvd_emit_wait(schedule, owner, (uint64_t)number + 2);
    hvd_emit_fetch(schedule, offer_of(owner, true), piece.begin * bytes,
                   piece.begin * bytes, (size_t)(piece.count * bytes));
}

static void emit_cma_reduce(struct hvd_schedule *schedule, int64_t tick)
{
    const struct hvd_cma_reduce_setup *setup = &schedule->setup.cma_reduce;

    if (tick == 0) {
        offer_input(schedule);
    }
    if (tick < setup->pieces) {
        reduce_piece(schedule, tick);
    } else {
        for (int i = 1; i < schedule->local_size; i++) {
            fetch_piece(schedule, (schedule->local_rank + i) % schedule->local_size,
                        tick - setup->pieces);
        }
    }
    if (tick == schedule->facts.ticks - 1) {
        hvd_emit_sync(schedule);
    }
}

int hvd_cma_reduce_set_up(struct hvd_schedule *schedule, struct hvd_error *err HVD_UNUSED)
{
    struct hvd_cma_reduce_setup *setup = &schedule->setup.cma_reduce;
    int64_t most = is_scatter(schedule)
                       ? schedule->query.part_count
                       : hvd_part_most(schedule->query.count, schedule->local_size);

    setup->piece_elements = piece_elements(schedule);
    setup->pieces = most > 0 ? hvd_divide_up(most, setup->piece_elements) : 1;
    schedule->emit = emit_cma_reduce;
    schedule->facts.is_offered = true;
    schedule->facts.ticks = is_scatter(schedule) ? setup->pieces : 2 * setup->pieces;
    schedule->facts.signals = is_scatter(schedule) ? 2 : (uint64_t)setup->pieces + 2;
    schedule->step_capacity = 8 + 2 * schedule->local_size;
    return 0;
}
