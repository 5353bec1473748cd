/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a sum into chunks and slices, packs them, and copies results out. */
#include "collectives/schedule/schedule_slices.h"

#include "collectives/schedule/schedule_steps.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/error.h"

bool hvd_slices_has_chunk(const struct hvd_schedule *schedule, int64_t number)
{
    return number >= 0 && number < schedule->setup.slices.chunks;
}

struct hvd_chunk hvd_slices_chunk(const struct hvd_schedule *schedule, int64_t number)
{
    int64_t most = schedule->setup.slices.chunk_elements;
    struct hvd_range all = {0, schedule->query.count};
    struct hvd_range slice = {number * most, most};

    return (struct hvd_chunk){
        .elements = hvd_range_common(all, slice),
        .slot = (int)(number % schedule->query.geometry.slots),
    };
}

bool hvd_slices_next(const struct hvd_schedule *schedule, const struct hvd_chunk *chunk,
                     struct hvd_slice_part *slice)
{
    int slices = schedule->setup.slices.slices;

    slice->turn++;
    slice->number = schedule->local_rank + slice->turn * schedule->local_size;
    if (slice->number >= slices) {
        return false;
    }
    slice->elements = hvd_part_of(chunk->elements, slices, slice->number);
    return true;
}

struct hvd_location hvd_slices_location(const struct hvd_schedule *schedule,
                                        const struct hvd_chunk *chunk,
                                        struct hvd_location location, int64_t first)
{
    size_t index = (size_t)(first - chunk->elements.begin);

    location.slot = chunk->slot;
    location.offset = index * schedule->query.element_bytes;
    return location;
}

struct hvd_location hvd_slices_out(const struct hvd_schedule *schedule,
                                   const struct hvd_chunk *chunk, int64_t first)
{
    struct hvd_location out = {.kind = HVD_LOCATION_OUT,
                               .local_rank = schedule->local_rank};

    return hvd_slices_location(schedule, chunk, out, first);
}

struct hvd_location hvd_slices_send(const struct hvd_schedule *schedule,
                                    const struct hvd_chunk *chunk,
                                    const struct hvd_slice_part *slice, int64_t first)
{
    size_t index = (size_t)(first - slice->elements.begin);
    size_t start = (size_t)slice->turn * schedule->setup.slices.send_slice_bytes;

    return hvd_location_of(HVD_LOCATION_SEND, schedule->local_rank, chunk->slot,
                           start + index * schedule->query.partial_bytes);
}

/* --- steps --- */

void hvd_slices_pack(struct hvd_schedule *schedule, const struct hvd_chunk *chunk,
                     struct hvd_range range)
{
    size_t bytes = schedule->query.element_bytes;
    struct hvd_location in = {.kind = HVD_LOCATION_IN,
                              .local_rank = schedule->local_rank};

    hvd_emit_put(schedule, range.begin * (int64_t)bytes, (size_t)range.count * bytes,
                 hvd_slices_location(schedule, chunk, in, range.begin));
}

/* Packs all slices except those that this rank owns. */
static void pack_slices(struct hvd_schedule *schedule, const struct hvd_chunk *chunk)
{
    int slices = schedule->setup.slices.slices;
    struct hvd_range range = {chunk->elements.begin, 0};

    for (int slice = 0; slice < slices; slice++) {
        struct hvd_range part = hvd_part_of(chunk->elements, slices, slice);

        if (slice % schedule->local_size == schedule->local_rank) {
            hvd_slices_pack(schedule, chunk, range);
            range = (struct hvd_range){part.begin + part.count, 0};
        } else {
            range.count += part.count;
        }
    }
    hvd_slices_pack(schedule, chunk, range);
}

void hvd_slices_reduce_local(struct hvd_schedule *schedule, const struct hvd_chunk *chunk)
{
    struct hvd_location in = {.kind = HVD_LOCATION_IN};
    struct hvd_slice_part slice = {.turn = -1};

    hvd_emit_wait_sends(schedule, schedule->marks[chunk->slot].sends);
    while (hvd_slices_next(schedule, chunk, &slice)) {
        int64_t first = slice.elements.begin;

        hvd_emit_reduce_local(schedule, hvd_slices_location(schedule, chunk, in, first),
                              first * (int64_t)schedule->query.element_bytes,
                              (size_t)slice.elements.count,
                              hvd_slices_send(schedule, chunk, &slice, first));
    }
}

/* Copies the elements that this rank wants from the OUT of the slices' owners. */
static void copy_out(struct hvd_schedule *schedule, const struct hvd_chunk *chunk)
{
    int slices = schedule->setup.slices.slices;
    struct hvd_range want = hvd_schedule_wanted(schedule);
    size_t bytes = schedule->query.element_bytes;

    for (int slice = 0; slice < slices; slice++) {
        struct hvd_range part = hvd_part_of(chunk->elements, slices, slice);
        struct hvd_range range = hvd_range_common(part, want);
        struct hvd_location out = {.kind = HVD_LOCATION_OUT,
                                   .local_rank = slice % schedule->local_size};

        hvd_emit_get(schedule, hvd_slices_location(schedule, chunk, out, range.begin),
                     (range.begin - want.begin) * (int64_t)bytes,
                     (size_t)range.count * bytes);
    }
}

static void emit_tick(struct hvd_schedule *schedule, int64_t tick)
{
    int64_t leaving = tick - schedule->setup.slices.get_lag;

    if (tick == 0) {
        hvd_emit_wait_all(schedule, 0);
    }
    if (hvd_slices_has_chunk(schedule, tick)) {
        struct hvd_chunk chunk = hvd_slices_chunk(schedule, tick);

        pack_slices(schedule, &chunk);
    }
    if (hvd_slices_has_chunk(schedule, tick) || hvd_slices_has_chunk(schedule, leaving)) {
        hvd_emit_sync(schedule);
    }
    schedule->setup.slices.ops->advance(schedule, tick);
    if (hvd_slices_has_chunk(schedule, leaving)) {
        struct hvd_chunk chunk = hvd_slices_chunk(schedule, leaving);

        copy_out(schedule, &chunk);
    }
    if (tick == schedule->facts.ticks - 1) {
        hvd_emit_signal(schedule);
        hvd_emit_wait_sends(schedule, schedule->posted.sends);
    }
}

/* --- the sizes of chunks and slices --- */

static size_t send_bytes(const struct hvd_schedule *schedule, int64_t slice_count)
{
    return (size_t)slice_count * schedule->query.partial_bytes;
}

static size_t recv_bytes(const struct hvd_schedule *schedule, int64_t slice_count)
{
    const struct hvd_slice_ops *ops = schedule->setup.slices.ops;

    return ops->recv_bytes != NULL ? ops->recv_bytes(schedule, slice_count) : 0;
}

/* Whether chunks of `elements` elements fit the slots of all locations. */
static bool fits_places(const struct hvd_schedule *schedule, int64_t elements)
{
    const struct hvd_schedule_query *query = &schedule->query;
    int slices = schedule->setup.slices.slices;
    size_t each = (size_t)schedule->setup.slices.owned;
    int64_t slice = hvd_part_most(elements, slices);

    if ((size_t)elements > query->geometry.slot_bytes / query->element_bytes) {
        return false;
    }
    return schedule->setup.slices.ops->recv_bytes == NULL ||
           (each * send_bytes(schedule, slice) <= query->geometry.slot_bytes &&
            each * recv_bytes(schedule, slice) <= query->geometry.recv_bytes);
}

/* Returns the most elements that a chunk may have; 0 if not one fits. */
static int64_t most_that_fit(const struct hvd_schedule *schedule)
{
    int64_t low = 0;
    int64_t high = (int64_t)schedule->query.geometry.slot_bytes;

    while (low < high) {
        int64_t middle = high - (high - low) / 2;

        if (fits_places(schedule, middle)) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* Returns the most elements of a chunk, shortened so that slices are whole messages of
 * the network. */
static int64_t most_for_messages(const struct hvd_schedule *schedule)
{
    const struct hvd_schedule_query *query = &schedule->query;
    int slices = schedule->setup.slices.slices;
    int64_t message = HVD_SCHEDULE_MESSAGE_BYTES / (int64_t)query->partial_bytes;
    int64_t most = most_that_fit(schedule);
    int64_t slice = most / slices;

    return schedule->setup.slices.is_pairwise && slice > message
               ? slice / message * message * slices
               : most;
}

/* The mean length of messages below which more chunks, which overlap but need more
 * messages, take longer than fewer. Simulated (contrib/bench/simulate) for 8 to 128 nodes
 * of 1 to 16 ranks, network cards of 25 and 100 Gb/s, and 0.5 and 2 us of processor time
 * per message: allreduces of 100 and 240 KiB then take up to 3 times less time than with
 * chunks of 64 KiB, and at most 13 % more. */
static const size_t least_message_bytes = 4096;

/* Returns the length below which chunks save no time: their messages would be too
 * short. */
static size_t least_chunk(const struct hvd_schedule *schedule)
{
    const struct hvd_slices_setup *setup = &schedule->setup.slices;
    const size_t bytes =
        (size_t)setup->messages * (size_t)setup->slices * least_message_bytes;

    return bytes > HVD_LEAST_CHUNK_BYTES ? bytes : HVD_LEAST_CHUNK_BYTES;
}

void hvd_slices_cut(struct hvd_schedule *schedule, int64_t most)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_slices_setup *setup = &schedule->setup.slices;

    setup->chunks = hvd_chunk_count(query->count, query->element_bytes, most,
                                    least_chunk(schedule), schedule->choice.chunk_bytes);
    setup->chunk_elements =
        setup->chunks > 0 ? hvd_divide_up(query->count, setup->chunks) : 1;
}

/* Returns the number of signals: a sync in each tick that packs a chunk or copies one
 * out, and a signal at the end. */
static uint64_t count_signals(const struct hvd_slices_setup *setup)
{
    int64_t lag = setup->get_lag;
    int64_t more = setup->chunks < lag ? setup->chunks : lag;

    return setup->chunks > 0 ? (uint64_t)(setup->chunks + more + 1) : 0;
}

int hvd_slices_set_up(struct hvd_schedule *schedule, const struct hvd_slice_ops *ops,
                      struct hvd_error *err)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_slices_setup *setup = &schedule->setup.slices;
    int64_t most, slice;

    setup->ops = ops;
    setup->slices = schedule->choice.has_one_slice ? 1 : hvd_slices_widest(query->layout);
    setup->owned = hvd_slices_each(query->layout, setup->slices);
    most = most_for_messages(schedule);
    if (most == 0) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "%d nodes do not fit: not one element of %zu bytes from each fits a "
            "receive buffer of %zu bytes; raise " HVD_ENV_MEMORY_LIMIT " or unset it",
            query->layout->nodes, query->partial_bytes, query->geometry.recv_bytes);
    }
    hvd_slices_cut(schedule, most);
    slice = hvd_part_most(setup->chunk_elements, setup->slices);
    setup->send_slice_bytes = send_bytes(schedule, slice);
    setup->recv_slice_bytes = recv_bytes(schedule, slice);
    schedule->emit = emit_tick;
    schedule->facts.ticks = setup->chunks > 0 ? setup->chunks + setup->get_lag : 0;
    schedule->facts.signals = count_signals(setup);
    schedule->step_capacity = 16 + setup->slices;
    return 0;
}
