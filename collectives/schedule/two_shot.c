/* SPDX-License-Identifier: Apache-2.0 */
/* Allreduce and reducescatter in chunks, of which ranks add up lanes.
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
 *             grid:     likewise, on several levels in one tick (multilevel.c)
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
 * Small ones go through lines; of large ones inputs are read where they are (cma_reduce.c).
 *
 * Sums run over local ranks, then over nodes, both in order (on a grid: over its rows, each in
 * order), whatever the chunks: the same bits on all ranks. */
#include "collectives/schedule/schedule_internode.h"

#include "collectives/schedule/schedule_steps.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/error.h"

/* What all local ranks read. */
static enum hvd_place_kind place_of_inputs(const struct hvd_schedule *schedule)
{
    return schedule->setup.lanes.is_line ? HVD_PLACE_LINE : HVD_PLACE_IN;
}

struct hvd_chunk hvd_lanes_chunk(const struct hvd_schedule *schedule, int64_t number)
{
    int64_t most = schedule->setup.lanes.chunk_elements;
    struct hvd_range all = {0, schedule->query.count};
    struct hvd_range slice = {number * most, most};

    return (struct hvd_chunk){
        .elements = hvd_range_common(all, slice),
        .slot = (int)(number % schedule->query.geometry.slots),
    };
}

struct hvd_place hvd_lanes_place(const struct hvd_schedule *schedule,
                                 const struct hvd_chunk *chunk, struct hvd_place place,
                                 int64_t first)
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
                 hvd_lanes_place(schedule, chunk, in, range.begin));
}

/* All but the lanes that this rank carries. */
static void pack(struct hvd_schedule *schedule, const struct hvd_chunk *chunk)
{
    const struct hvd_lanes_setup *setup = &schedule->setup.lanes;
    struct hvd_range range = {chunk->elements.begin, 0};

    if (setup->is_full) {
        range.count = schedule->local_size > 1 && !hvd_schedule_is_unread(schedule)
                          ? chunk->elements.count
                          : 0;
        pack_range(schedule, chunk, range);
        return;
    }
    for (int lane = 0; lane < setup->lanes; lane++) {
        struct hvd_range part = hvd_part_of(chunk->elements, setup->lanes, lane);

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
    const struct hvd_lanes_setup *setup = &schedule->setup.lanes;
    int64_t bytes = (int64_t)schedule->query.element_bytes;
    struct hvd_place in = {.kind = place_of_inputs(schedule)};
    struct hvd_place out = {.kind = HVD_PLACE_OUT, .local_rank = schedule->local_rank};
    struct hvd_range want = wanted(schedule), mine;

    mine = setup->is_full
               ? hvd_range_common(chunk->elements, want)
               : hvd_part_of(chunk->elements, setup->lanes, schedule->local_rank);
    in = hvd_lanes_place(schedule, chunk, in, mine.begin);
    if (setup->is_full) {
        hvd_emit_reduce_out(schedule, in, mine.begin * bytes, (size_t)mine.count,
                            (mine.begin - want.begin) * bytes);
        return;
    }
    out = hvd_lanes_place(schedule, chunk, out, mine.begin);
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

    hvd_emit_get(schedule, hvd_lanes_place(schedule, chunk, out, range.begin),
                 (range.begin - want.begin) * (int64_t)bytes,
                 (size_t)range.count * bytes);
}

static void unpack(struct hvd_schedule *schedule, const struct hvd_chunk *chunk)
{
    const struct hvd_lanes_setup *setup = &schedule->setup.lanes;

    for (int lane = 0; lane < setup->lanes; lane++) {
        copy_out(schedule, chunk, hvd_part_of(chunk->elements, setup->lanes, lane),
                 lane % schedule->local_size);
    }
}

/* --- ticks ----------------------------------------------------------------------------- */

static bool is_chunk(const struct hvd_schedule *schedule, int64_t number)
{
    return number >= 0 && number < schedule->setup.lanes.chunks;
}

static void pack_and_sync(struct hvd_schedule *schedule, int64_t tick)
{
    int64_t leaving = tick - schedule->setup.lanes.get_lag;

    if (is_chunk(schedule, tick)) {
        struct hvd_chunk chunk = hvd_lanes_chunk(schedule, tick);

        pack(schedule, &chunk);
    }
    if (is_chunk(schedule, tick) || is_chunk(schedule, leaving)) {
        hvd_emit_sync(schedule);
    }
}

static void advance_nodes(struct hvd_schedule *schedule, int64_t tick)
{
    const struct hvd_lanes_setup *setup = &schedule->setup.lanes;

    if (is_chunk(schedule, tick)) {
        struct hvd_chunk chunk = hvd_lanes_chunk(schedule, tick);

        hvd_exchange_local_partials(schedule, &chunk);
        hvd_exchange_post_partials(schedule, &chunk);
    }
    if (is_chunk(schedule, tick - 1)) {
        struct hvd_chunk chunk = hvd_lanes_chunk(schedule, tick - 1);

        hvd_exchange_reduce_nodes(schedule, &chunk);
        if (setup->is_direct) {
            hvd_exchange_post_finals(schedule, &chunk);
        }
    }
    if (setup->is_direct && is_chunk(schedule, tick - setup->finals_lag)) {
        struct hvd_chunk chunk = hvd_lanes_chunk(schedule, tick - setup->finals_lag);

        hvd_exchange_await_finals(schedule, &chunk);
    }
}

static void emit(struct hvd_schedule *schedule, int64_t tick)
{
    int64_t leaving = tick - schedule->setup.lanes.get_lag;

    if (tick == 0) {
        hvd_emit_wait_all(schedule, 0);
    }
    pack_and_sync(schedule, tick);
    if (schedule->setup.lanes.is_grid) {
        hvd_grid_allreduce_tick(schedule, tick);
    } else if (schedule->query.layout->nodes > 1) {
        advance_nodes(schedule, tick);
    } else if (is_chunk(schedule, tick)) {
        struct hvd_chunk chunk = hvd_lanes_chunk(schedule, tick);

        reduce_on_node(schedule, &chunk);
    }
    if (is_chunk(schedule, leaving) && !schedule->setup.lanes.is_full) {
        struct hvd_chunk chunk = hvd_lanes_chunk(schedule, leaving);

        unpack(schedule, &chunk);
    }
    if (tick == schedule->facts.ticks - 1 && schedule->facts.turns == 0) {
        hvd_emit_signal(schedule);
        hvd_emit_wait_sends(schedule, schedule->posted.sends);
    }
}

/* --- how many, of how many elements ------------------------------------------------------- */

static void choose_on_node(struct hvd_schedule *schedule)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_lanes_setup *setup = &schedule->setup.lanes;
    int64_t line = HVD_LINE_BYTES / (int64_t)query->element_bytes;
    enum hvd_algorithm algorithm = hvd_single_sum_else(schedule);

    setup->is_full = algorithm != HVD_ALGORITHM_LANES;
    setup->is_line = algorithm == HVD_ALGORITHM_LINE && query->count <= line;
    schedule->choice.chunk_bytes = setup->is_line ? 0 : schedule->choice.chunk_bytes;
    setup->get_lag = setup->is_full ? 0 : 1;
    schedule->facts.name = setup->is_line ? "line" : setup->is_full ? "full" : "lanes";
}

static void choose_between_nodes(struct hvd_schedule *schedule)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_lanes_setup *setup = &schedule->setup.lanes;
    int nodes = query->layout->nodes;

    setup->lanes = schedule->choice.has_one_lane ? 1 : setup->lanes;
    hvd_grid_make(nodes, schedule->grid_levels, &setup->grid);
    setup->seat = hvd_grid_seat(&setup->grid, schedule->node);
    setup->is_grid = setup->grid.levels > 1;
    setup->is_direct = nodes > 2 && schedule->choice.algorithm == HVD_ALGORITHM_DIRECT;
    setup->finals_lag = query->geometry.slots > 2 ? 2 : 1;
    setup->get_lag = setup->is_direct || setup->is_grid ? setup->finals_lag + 1 : 2;
    setup->is_pairwise = nodes == 2 && setup->get_lag < query->geometry.slots;
    schedule->facts.name = setup->is_grid ? setup->is_direct ? "grid" : "grid exchange"
                           : setup->is_direct ? "direct"
                                              : "exchange";
}

/* Whether chunks of so many elements fit all places. */
static bool fits(const struct hvd_schedule *schedule, int64_t elements)
{
    const struct hvd_schedule_query *query = &schedule->query;
    int lanes = schedule->setup.lanes.lanes;
    size_t each = (size_t)schedule->setup.lanes.carried;
    int64_t lane = hvd_part_most(elements, lanes);

    if ((size_t)elements > query->geometry.slot_bytes / query->element_bytes) {
        return false;
    }
    return query->layout->nodes == 1 ||
           (each * hvd_exchange_send_bytes(schedule, lane) <=
                query->geometry.slot_bytes &&
            each * hvd_exchange_recv_bytes(schedule, lane) <= query->geometry.recv_bytes);
}

/* The most elements that fit, at least 0. */
static int64_t most_that_fit(const struct hvd_schedule *schedule)
{
    int64_t low = 0;
    int64_t high = (int64_t)schedule->query.geometry.slot_bytes;

    while (low < high) {
        int64_t middle = high - (high - low) / 2;

        if (fits(schedule, middle)) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* The same, shortened so that lanes are whole messages of the network. */
static int64_t most_for_messages(const struct hvd_schedule *schedule)
{
    const struct hvd_schedule_query *query = &schedule->query;
    int lanes = schedule->setup.lanes.lanes;
    int64_t message = HVD_SCHEDULE_MESSAGE_BYTES / (int64_t)query->partial_bytes;
    int64_t most = most_that_fit(schedule);
    int64_t lane = most / lanes;

    return schedule->setup.lanes.is_pairwise && lane > message
               ? lane / message * message * lanes
               : most;
}

/* A sync in each tick that packs a chunk, copies one out or both, and a signal at the end
 * unless it stays open. */
static uint64_t count_signals(const struct hvd_lanes_setup *setup)
{
    int64_t lag = setup->get_lag;
    int64_t more = setup->chunks < lag ? setup->chunks : lag;

    return setup->chunks > 0 ? (uint64_t)(setup->chunks + more + (setup->is_full ? 0 : 1))
                             : 0;
}

int hvd_lanes_allreduce_set_up(struct hvd_schedule *schedule, struct hvd_error *err)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_lanes_setup *setup = &schedule->setup.lanes;
    int64_t most, lane;

    setup->lanes = hvd_lanes_widest(query->layout);
    if (query->layout->nodes == 1) {
        choose_on_node(schedule);
    } else {
        choose_between_nodes(schedule);
    }
    setup->carried = hvd_lanes_each(query->layout, setup->lanes);
    most = most_for_messages(schedule);
    if (most == 0) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "%d nodes do not fit: not one element of %zu bytes from each fits the "
            "%zu bytes for what comes; raise " HVD_ENV_MEMORY_LIMIT " or unset it",
            query->layout->nodes, query->partial_bytes, query->geometry.recv_bytes);
    }
    setup->chunks = hvd_chunk_count(query->count, query->element_bytes, most,
                                    schedule->choice.chunk_bytes);
    setup->chunk_elements =
        setup->chunks > 0 ? hvd_divide_up(query->count, setup->chunks) : 1;
    lane = hvd_part_most(setup->chunk_elements, setup->lanes);
    setup->send_lane_bytes = hvd_exchange_send_bytes(schedule, lane);
    setup->recv_lane_bytes = hvd_exchange_recv_bytes(schedule, lane);
    schedule->emit = emit;
    schedule->facts.ticks = setup->chunks > 0 ? setup->chunks + setup->get_lag : 0;
    schedule->facts.signals = count_signals(setup);
    schedule->facts.turns = setup->is_full ? setup->chunks : 0;
    schedule->step_capacity = 16 + setup->lanes + hvd_exchange_steps_between(setup);
    return 0;
}
