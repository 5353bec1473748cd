/* SPDX-License-Identifier: Apache-2.0 */
/* Allreduce and reducescatter: the steps of a tick. schedule_allreduce_plan.c decides how many.
 *
 * A chunk is cut into lanes; on every node one local rank carries a lane. One chunk, several
 * nodes, in ticks from the one that packs it:
 *
 *   tick 0  PUT my chunk; sync; carriers add up their lane of all local ranks, as partials,
 *           and post messages with the other nodes' carriers of the lane
 *   tick 1  carriers add up what came, in the order of nodes
 *             exchange: each node got the whole lane of all others; that is the result
 *             direct:   each node got its share of the lane, and now sends the result of it
 *                       to all others (whose shares are there one tick later)
 *             grid:     likewise, on several levels in one tick (schedule_allreduce_grid.c)
 *   then    sync; everyone GETs all lanes from their carriers
 *
 * Each tick has one sync, of the chunk packed in it, which also tells that all local ranks
 * have ended the tick before. So with a sync in tick t
 *   - IN of chunk t - slots may be overwritten in tick t: it was read in tick t - slots
 *   - OUT of chunk t - 1 - slots may be overwritten in tick t: it was copied out in tick
 *     t - 1 - slots + get_lag at the latest, and get_lag <= slots
 * What comes from the other of two nodes is added up while it comes, to OUT of chunk t from tick
 * t on: so get_lag must be below slots there.
 * What only its own carrier needs of a rank's input is not packed: it is read where it is.
 * On one node lanes go straight to OUT, or it is "full": everyone adds up all that it needs,
 * straight to the output, which takes one sync a chunk instead of two; such a schedule stays open.
 * Small ones go through lines; of large ones inputs are read where they are (schedule_single_sum.c).
 *
 * Sums run over local ranks, then over nodes, both in order (on a grid: over its rows, each in
 * order), whatever the chunks: the same bits on all ranks. */
#include "collectives/execute/schedule_allreduce.h"

#include "collectives/execute/schedule_steps.h"

/* What all local ranks read. */
static enum hvd_place_kind place_of_inputs(const struct hvd_schedule *schedule)
{
    return schedule->plan.allreduce.is_line ? HVD_PLACE_LINE : HVD_PLACE_IN;
}

struct hvd_chunk hvd_allreduce_chunk(const struct hvd_schedule *schedule, int64_t number)
{
    int64_t most = schedule->plan.allreduce.chunk_elements;
    struct hvd_range all = {0, schedule->query.count};
    struct hvd_range slice = {number * most, most};

    return (struct hvd_chunk){
        .elements = hvd_range_common(all, slice),
        .slot = (int)(number % schedule->query.geometry.slots),
    };
}

struct hvd_place hvd_allreduce_place(const struct hvd_schedule *schedule,
                                     const struct hvd_chunk *chunk,
                                     struct hvd_place place, int64_t first)
{
    size_t index = (size_t)(first - chunk->elements.begin);

    place.slot = chunk->slot;
    place.offset = index * schedule->query.element_bytes;
    return place;
}

/* The elements of the input whose result this rank gets. */
static struct hvd_range wanted(const struct hvd_schedule *schedule)
{
    const struct hvd_schedule_query *query = &schedule->query;

    if (query->collective == HVD_COLL_REDUCESCATTER) {
        return (struct hvd_range){query->part_begin, query->part_count};
    }
    return (struct hvd_range){0, query->count};
}

/* --- steps ----------------------------------------------------------------------------- */

static void pack_range(struct hvd_schedule *schedule, const struct hvd_chunk *chunk,
                       struct hvd_range range)
{
    size_t bytes = schedule->query.element_bytes;
    struct hvd_place in = {.kind = place_of_inputs(schedule),
                           .local_rank = schedule->local_rank};

    hvd_emit_put(schedule, range.begin * (int64_t)bytes, (size_t)range.count * bytes,
                 hvd_allreduce_place(schedule, chunk, in, range.begin));
}

/* All but the lanes that this rank carries. */
static void pack(struct hvd_schedule *schedule, const struct hvd_chunk *chunk)
{
    const struct hvd_allreduce_plan *plan = &schedule->plan.allreduce;
    struct hvd_range range = {chunk->elements.begin, 0};

    if (plan->is_full) {
        range.count = schedule->local_size > 1 ? chunk->elements.count : 0;
        pack_range(schedule, chunk, range);
        return;
    }
    for (int lane = 0; lane < plan->lanes; lane++) {
        struct hvd_range part = hvd_part_of(chunk->elements, plan->lanes, lane);

        if (lane % schedule->local_size == schedule->local_rank) {
            pack_range(schedule, chunk, range);
            range = (struct hvd_range){part.begin + part.count, 0};
        } else {
            range.count += part.count;
        }
    }
    pack_range(schedule, chunk, range);
}

/* On one node: what I carry to my OUT, or all that I want to my output. */
static void reduce_on_node(struct hvd_schedule *schedule, const struct hvd_chunk *chunk)
{
    const struct hvd_allreduce_plan *plan = &schedule->plan.allreduce;
    int64_t bytes = (int64_t)schedule->query.element_bytes;
    struct hvd_place in = {.kind = place_of_inputs(schedule)};
    struct hvd_place out = {.kind = HVD_PLACE_OUT, .local_rank = schedule->local_rank};
    struct hvd_range want = wanted(schedule), mine;

    mine = plan->is_full
               ? hvd_range_common(chunk->elements, want)
               : hvd_part_of(chunk->elements, plan->lanes, schedule->local_rank);
    in = hvd_allreduce_place(schedule, chunk, in, mine.begin);
    if (plan->is_full) {
        hvd_emit_reduce_out(schedule, in, mine.begin * bytes, (size_t)mine.count,
                            (mine.begin - want.begin) * bytes);
        return;
    }
    out = hvd_allreduce_place(schedule, chunk, out, mine.begin);
    hvd_emit_reduce_local(schedule, in, mine.begin * bytes, (size_t)mine.count, out);
}

/* Copies what this rank wants of some elements from the OUT of the local rank that has their
 * result. */
static void copy_out(struct hvd_schedule *schedule, const struct hvd_chunk *chunk,
                     struct hvd_range elements, int holder)
{
    struct hvd_range want = wanted(schedule);
    struct hvd_range range = hvd_range_common(elements, want);
    size_t bytes = schedule->query.element_bytes;
    struct hvd_place out = {.kind = HVD_PLACE_OUT, .local_rank = holder};

    hvd_emit_get(schedule, hvd_allreduce_place(schedule, chunk, out, range.begin),
                 (range.begin - want.begin) * (int64_t)bytes,
                 (size_t)range.count * bytes);
}

static void unpack(struct hvd_schedule *schedule, const struct hvd_chunk *chunk)
{
    const struct hvd_allreduce_plan *plan = &schedule->plan.allreduce;

    for (int lane = 0; lane < plan->lanes; lane++) {
        copy_out(schedule, chunk, hvd_part_of(chunk->elements, plan->lanes, lane),
                 lane % schedule->local_size);
    }
}

/* --- ticks ----------------------------------------------------------------------------- */

static bool is_chunk(const struct hvd_schedule *schedule, int64_t number)
{
    return number >= 0 && number < schedule->plan.allreduce.chunks;
}

static void pack_and_sync(struct hvd_schedule *schedule, int64_t tick)
{
    int64_t leaving = tick - schedule->plan.allreduce.get_lag;

    if (is_chunk(schedule, tick)) {
        struct hvd_chunk chunk = hvd_allreduce_chunk(schedule, tick);

        pack(schedule, &chunk);
    }
    if (is_chunk(schedule, tick) || is_chunk(schedule, leaving)) {
        hvd_emit_sync(schedule);
    }
}

static void advance_nodes(struct hvd_schedule *schedule, int64_t tick)
{
    const struct hvd_allreduce_plan *plan = &schedule->plan.allreduce;

    if (is_chunk(schedule, tick)) {
        struct hvd_chunk chunk = hvd_allreduce_chunk(schedule, tick);

        hvd_allreduce_local_partials(schedule, &chunk);
        hvd_allreduce_post_partials(schedule, &chunk);
    }
    if (is_chunk(schedule, tick - 1)) {
        struct hvd_chunk chunk = hvd_allreduce_chunk(schedule, tick - 1);

        hvd_allreduce_reduce_nodes(schedule, &chunk);
        if (plan->is_direct) {
            hvd_allreduce_post_finals(schedule, &chunk);
        }
    }
    if (plan->is_direct && is_chunk(schedule, tick - plan->finals_lag)) {
        struct hvd_chunk chunk = hvd_allreduce_chunk(schedule, tick - plan->finals_lag);

        hvd_allreduce_await_finals(schedule, &chunk);
    }
}

void hvd_allreduce_emit(struct hvd_schedule *schedule, int64_t tick)
{
    int64_t leaving = tick - schedule->plan.allreduce.get_lag;

    if (tick == 0) {
        hvd_emit_wait_all(schedule, 0);
    }
    pack_and_sync(schedule, tick);
    if (schedule->plan.allreduce.is_grid) {
        hvd_allreduce_grid_tick(schedule, tick);
    } else if (schedule->query.layout->nodes > 1) {
        advance_nodes(schedule, tick);
    } else if (is_chunk(schedule, tick)) {
        struct hvd_chunk chunk = hvd_allreduce_chunk(schedule, tick);

        reduce_on_node(schedule, &chunk);
    }
    if (is_chunk(schedule, leaving) && !schedule->plan.allreduce.is_full) {
        struct hvd_chunk chunk = hvd_allreduce_chunk(schedule, leaving);

        unpack(schedule, &chunk);
    }
    if (tick == schedule->ticks - 1 && schedule->turns == 0) {
        hvd_emit_signal(schedule);
        hvd_emit_wait_sends(schedule, schedule->posted.sends);
    }
}
