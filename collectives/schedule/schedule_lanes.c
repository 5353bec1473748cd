/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting a sum into chunks and lanes, packing them and copying results out. */
#include "collectives/schedule/schedule_lanes.h"

#include "collectives/schedule/schedule_steps.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/error.h"

bool hvd_lanes_has_chunk(const struct hvd_schedule *schedule, int64_t number)
{
    return number >= 0 && number < schedule->setup.lanes.chunks;
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

bool hvd_lanes_next(const struct hvd_schedule *schedule, const struct hvd_chunk *chunk,
                    struct hvd_lane_part *lane)
{
    int lanes = schedule->setup.lanes.lanes;

    lane->turn++;
    lane->number = schedule->local_rank + lane->turn * schedule->local_size;
    if (lane->number >= lanes) {
        return false;
    }
    lane->elements = hvd_part_of(chunk->elements, lanes, lane->number);
    return true;
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

struct hvd_place hvd_lanes_out(const struct hvd_schedule *schedule,
                               const struct hvd_chunk *chunk, int64_t first)
{
    struct hvd_place out = {.kind = HVD_PLACE_OUT, .local_rank = schedule->local_rank};

    return hvd_lanes_place(schedule, chunk, out, first);
}

struct hvd_place hvd_lanes_send(const struct hvd_schedule *schedule,
                                const struct hvd_chunk *chunk,
                                const struct hvd_lane_part *lane, int64_t first)
{
    size_t index = (size_t)(first - lane->elements.begin);
    size_t start = (size_t)lane->turn * schedule->setup.lanes.send_lane_bytes;

    return hvd_place_of(HVD_PLACE_SEND, schedule->local_rank, chunk->slot,
                        start + index * schedule->query.partial_bytes);
}

/* --- steps --- */

void hvd_lanes_pack(struct hvd_schedule *schedule, const struct hvd_chunk *chunk,
                    struct hvd_range range)
{
    size_t bytes = schedule->query.element_bytes;
    struct hvd_place in = {.kind = HVD_PLACE_IN, .local_rank = schedule->local_rank};

    hvd_emit_put(schedule, range.begin * (int64_t)bytes, (size_t)range.count * bytes,
                 hvd_lanes_place(schedule, chunk, in, range.begin));
}

/* Packs all lanes but those that this rank carries. */
static void pack_lanes(struct hvd_schedule *schedule, const struct hvd_chunk *chunk)
{
    int lanes = schedule->setup.lanes.lanes;
    struct hvd_range range = {chunk->elements.begin, 0};

    for (int lane = 0; lane < lanes; lane++) {
        struct hvd_range part = hvd_part_of(chunk->elements, lanes, lane);

        if (lane % schedule->local_size == schedule->local_rank) {
            hvd_lanes_pack(schedule, chunk, range);
            range = (struct hvd_range){part.begin + part.count, 0};
        } else {
            range.count += part.count;
        }
    }
    hvd_lanes_pack(schedule, chunk, range);
}

void hvd_lanes_reduce_local(struct hvd_schedule *schedule, const struct hvd_chunk *chunk)
{
    struct hvd_place in = {.kind = HVD_PLACE_IN};
    struct hvd_lane_part lane = {.turn = -1};

    hvd_emit_wait_sends(schedule, schedule->marks[chunk->slot].sends);
    while (hvd_lanes_next(schedule, chunk, &lane)) {
        int64_t first = lane.elements.begin;

        hvd_emit_reduce_local(schedule, hvd_lanes_place(schedule, chunk, in, first),
                              first * (int64_t)schedule->query.element_bytes,
                              (size_t)lane.elements.count,
                              hvd_lanes_send(schedule, chunk, &lane, first));
    }
}

/* Copies what this rank wants of all lanes from the OUT of their carriers. */
static void copy_out(struct hvd_schedule *schedule, const struct hvd_chunk *chunk)
{
    int lanes = schedule->setup.lanes.lanes;
    struct hvd_range want = hvd_schedule_wanted(schedule);
    size_t bytes = schedule->query.element_bytes;

    for (int lane = 0; lane < lanes; lane++) {
        struct hvd_range part = hvd_part_of(chunk->elements, lanes, lane);
        struct hvd_range range = hvd_range_common(part, want);
        struct hvd_place out = {.kind = HVD_PLACE_OUT,
                                .local_rank = lane % schedule->local_size};

        hvd_emit_get(schedule, hvd_lanes_place(schedule, chunk, out, range.begin),
                     (range.begin - want.begin) * (int64_t)bytes,
                     (size_t)range.count * bytes);
    }
}

static void emit(struct hvd_schedule *schedule, int64_t tick)
{
    int64_t leaving = tick - schedule->setup.lanes.get_lag;

    if (tick == 0) {
        hvd_emit_wait_all(schedule, 0);
    }
    if (hvd_lanes_has_chunk(schedule, tick)) {
        struct hvd_chunk chunk = hvd_lanes_chunk(schedule, tick);

        pack_lanes(schedule, &chunk);
    }
    if (hvd_lanes_has_chunk(schedule, tick) || hvd_lanes_has_chunk(schedule, leaving)) {
        hvd_emit_sync(schedule);
    }
    schedule->setup.lanes.ops->advance(schedule, tick);
    if (hvd_lanes_has_chunk(schedule, leaving)) {
        struct hvd_chunk chunk = hvd_lanes_chunk(schedule, leaving);

        copy_out(schedule, &chunk);
    }
    if (tick == schedule->facts.ticks - 1) {
        hvd_emit_signal(schedule);
        hvd_emit_wait_sends(schedule, schedule->posted.sends);
    }
}

/* --- how many, of how many elements --- */

static size_t send_bytes(const struct hvd_schedule *schedule, int64_t lane_count)
{
    return (size_t)lane_count * schedule->query.partial_bytes;
}

static size_t recv_bytes(const struct hvd_schedule *schedule, int64_t lane_count)
{
    const struct hvd_lane_ops *ops = schedule->setup.lanes.ops;

    return ops->recv_bytes != NULL ? ops->recv_bytes(schedule, lane_count) : 0;
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
    return schedule->setup.lanes.ops->recv_bytes == NULL ||
           (each * send_bytes(schedule, lane) <= query->geometry.slot_bytes &&
            each * recv_bytes(schedule, lane) <= query->geometry.recv_bytes);
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

void hvd_lanes_cut(struct hvd_schedule *schedule, int64_t most)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_lanes_setup *setup = &schedule->setup.lanes;

    setup->chunks = hvd_chunk_count(query->count, query->element_bytes, most,
                                    schedule->choice.chunk_bytes);
    setup->chunk_elements =
        setup->chunks > 0 ? hvd_divide_up(query->count, setup->chunks) : 1;
}

/* A sync in each tick that packs a chunk, copies one out or both, and a signal at the
 * end. */
static uint64_t count_signals(const struct hvd_lanes_setup *setup)
{
    int64_t lag = setup->get_lag;
    int64_t more = setup->chunks < lag ? setup->chunks : lag;

    return setup->chunks > 0 ? (uint64_t)(setup->chunks + more + 1) : 0;
}

int hvd_lanes_set_up(struct hvd_schedule *schedule, const struct hvd_lane_ops *ops,
                     struct hvd_error *err)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_lanes_setup *setup = &schedule->setup.lanes;
    int64_t most, lane;

    setup->ops = ops;
    setup->lanes = schedule->choice.has_one_lane ? 1 : hvd_lanes_widest(query->layout);
    setup->carried = hvd_lanes_each(query->layout, setup->lanes);
    most = most_for_messages(schedule);
    if (most == 0) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "%d nodes do not fit: not one element of %zu bytes from each fits the "
            "%zu bytes for what comes; raise " HVD_ENV_MEMORY_LIMIT " or unset it",
            query->layout->nodes, query->partial_bytes, query->geometry.recv_bytes);
    }
    hvd_lanes_cut(schedule, most);
    lane = hvd_part_most(setup->chunk_elements, setup->lanes);
    setup->send_lane_bytes = send_bytes(schedule, lane);
    setup->recv_lane_bytes = recv_bytes(schedule, lane);
    schedule->emit = emit;
    schedule->facts.ticks = setup->chunks > 0 ? setup->chunks + setup->get_lag : 0;
    schedule->facts.signals = count_signals(setup);
    schedule->step_capacity = 16 + setup->lanes;
    return 0;
}
