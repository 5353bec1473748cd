/* SPDX-License-Identifier: Apache-2.0 */
/* Allreduce and reducescatter of two ranks on two nodes: a pairwise exchange, which is
 * the one step that recursive doubling has for two ranks.
 *
 *   input --PUT--> SEND ---> the other rank
 *                    |
 *      other rank ---+---> output: the sum, written as the other rank's piece arrives
 *
 * A piece is one message, which the network sends in one fragment; several pieces are in
 * flight, in a ring of buffers. Each piece is packed once, into memory that stays in the
 * cache; the network and the sum read it there, and its buffer is free when both are
 * done. So the output may be the input, and the input is not needed once it is packed. A
 * reducescatter packs the elements that it sends and those that it keeps separately.
 *
 * 16-bit floats travel in their own type. The other algorithms send partials in float
 * between nodes, but here a partial would be the input of one rank, so float would give
 * the same bits. */
#include "collectives/schedule/schedule_parts.h"
#include "collectives/schedule/schedule_steps.h"
#include "gpu_binding/base/error.h"

enum {
    /* Bytes in flight: enough for a path of 100 us at 2.5 GB/s, and little enough to stay
     * in the L2 cache together with the network's receive buffer. Twice as many cost 5 %
     * over TCP. */
    USUAL_WINDOW_BYTES = 4 * HVD_SCHEDULE_MESSAGE_BYTES,
    STEPS = 8, /* the most steps of a tick */
    ALIGNED_ELEMENTS = 64,
};

static struct hvd_range piece_of(struct hvd_range whole, int64_t number, int64_t most)
{
    struct hvd_range slice = {whole.begin + number * most, most};

    return hvd_range_common(whole, slice);
}

/* Returns where part 0 or 1 of a piece lies in SEND. */
static struct hvd_location location_of(const struct hvd_schedule *schedule, int64_t piece,
                                       int part)
{
    const struct hvd_pair_setup *setup = &schedule->setup.pair;
    int at = (int)(piece % setup->ring);
    size_t bytes = (size_t)setup->piece_elements * schedule->query.element_bytes;

    return hvd_location_of(HVD_LOCATION_SEND, 0, at / setup->per_slot,
                           (size_t)(at % setup->per_slot * setup->parts + part) * bytes);
}

static void pack_range(struct hvd_schedule *schedule, struct hvd_range elements,
                       struct hvd_location to)
{
    size_t bytes = schedule->query.element_bytes;

    hvd_emit_put(schedule, elements.begin * (int64_t)bytes,
                 (size_t)elements.count * bytes, to);
}

/* Returns the number of messages that carry pieces 0 to `piece` of a range. */
static uint64_t message_count(const struct hvd_pair_setup *setup, struct hvd_range range,
                              int64_t piece)
{
    int64_t all = hvd_divide_up(range.count, setup->piece_elements);

    return (uint64_t)(piece < all ? piece + 1 : all);
}

/* Waits until the piece is sent and its sum is written, so that its buffer is free. */
static void await_piece(struct hvd_schedule *schedule, int64_t piece)
{
    const struct hvd_pair_setup *setup = &schedule->setup.pair;

    if (piece >= 0) {
        hvd_emit_wait_sends(schedule, message_count(setup, setup->sent, piece));
        hvd_emit_wait_recvs(schedule, message_count(setup, setup->kept, piece));
    }
}

static void emit_pair(struct hvd_schedule *schedule, int64_t tick)
{
    const struct hvd_pair_setup *setup = &schedule->setup.pair;
    struct hvd_range out = piece_of(setup->sent, tick, setup->piece_elements);
    struct hvd_range own = piece_of(setup->kept, tick, setup->piece_elements);
    int64_t begin = own.begin - setup->kept.begin;
    size_t bytes = schedule->query.element_bytes;
    struct hvd_location from = location_of(schedule, tick, 0);
    int other = 1 - schedule->query.rank;
    const struct hvd_arrival arrival = {.own =
                                            location_of(schedule, tick, setup->parts - 1),
                                        .output = begin * (int64_t)bytes,
                                        .count = (size_t)own.count};

    await_piece(schedule, tick - setup->ring);
    pack_range(schedule, out, from);
    if (setup->parts > 1) {
        pack_range(schedule, own, arrival.own);
    }
    hvd_emit_recv_reduce(schedule, &arrival, other);
    hvd_emit_send(schedule, from, (size_t)out.count * bytes, other);
    if (tick == schedule->facts.ticks - 1) {
        await_piece(schedule, tick);
    }
}

static void choose_ranges(struct hvd_schedule *schedule)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_pair_setup *setup = &schedule->setup.pair;
    int64_t end = query->part_begin + query->part_count;

    setup->sent = setup->kept = (struct hvd_range){0, query->count};
    setup->parts = 1;
    if (query->collective == HVD_COLL_REDUCESCATTER) {
        setup->parts = 2;
        setup->kept = (struct hvd_range){query->part_begin, query->part_count};
        setup->sent = query->rank == 0 ? (struct hvd_range){end, query->count - end}
                                       : (struct hvd_range){0, query->part_begin};
    }
}

/* Cuts the data into the fewest pieces that are not too long, all of about the same
 * size. */
static void choose_pieces(struct hvd_schedule *schedule)
{
    const struct hvd_geometry *geometry = &schedule->query.geometry;
    struct hvd_pair_setup *setup = &schedule->setup.pair;
    size_t bytes = schedule->query.element_bytes;
    size_t room = geometry->slot_bytes / (size_t)setup->parts;
    size_t window = schedule->choice.window_bytes > 0 ? schedule->choice.window_bytes
                                                      : USUAL_WINDOW_BYTES;
    size_t longest =
        room < HVD_SCHEDULE_MESSAGE_BYTES ? room : HVD_SCHEDULE_MESSAGE_BYTES;
    int64_t most = (int64_t)(longest / bytes);
    int64_t all =
        setup->sent.count > setup->kept.count ? setup->sent.count : setup->kept.count;
    int64_t piece = hvd_divide_up(all, hvd_divide_up(all > 0 ? all : 1, most));

    piece = hvd_divide_up(piece, ALIGNED_ELEMENTS) * ALIGNED_ELEMENTS;
    piece = piece < most ? piece : most;
    setup->piece_elements = piece > 0 ? piece : 1;
    setup->pieces = hvd_divide_up(all, setup->piece_elements);
    setup->per_slot = (int)(room / ((size_t)setup->piece_elements * bytes));
    setup->ring = (int)(window / ((size_t)setup->piece_elements * bytes));
    setup->ring = setup->ring > 0 ? setup->ring : 1;
    if (setup->ring > setup->per_slot * geometry->slots) {
        setup->ring = setup->per_slot * geometry->slots;
    }
}

int hvd_pair_set_up(struct hvd_schedule *schedule, struct hvd_error *err)
{
    size_t bytes = schedule->query.element_bytes;

    if (schedule->query.geometry.slot_bytes < 2 * bytes) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "a slot is too small for two elements of %zu bytes", bytes);
    }
    choose_ranges(schedule);
    choose_pieces(schedule);
    schedule->emit = emit_pair;
    schedule->facts.ticks = schedule->setup.pair.pieces;
    schedule->facts.signals = 0;
    schedule->step_capacity = STEPS;
    return 0;
}
