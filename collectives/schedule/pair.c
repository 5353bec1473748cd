/* SPDX-License-Identifier: Apache-2.0 */
/* Allreduce and reducescatter of two ranks on two nodes.
 *
 *   input --PUT--> SEND ---> the other
 *                    |
 *       the other ---+---> output: the sum, written when the other's piece comes
 *
 * A piece is a message that the network sends in one fragment; a ring of them is under
 * way. Each is packed once, into memory that stays in the cache, is read there by the
 * network and by the sum, and is gone when both are done. So the input may be the output,
 * and may be forgotten. A reducescatter packs the piece that it sends and the one that it
 * keeps apart.
 *
 * Pieces travel as elements, also of 16 bits, since one rank's partial is its input: the
 * same bits as partials in float give. */
#include "collectives/schedule/schedule_parts.h"
#include "collectives/schedule/schedule_steps.h"
#include "gpu_binding/base/error.h"

enum {
    /* Bytes under way: fills a path of 100 us at 2.5 GB/s, and stays in the L2 cache
     * together with what the network reads into. Twice as much cost 5 % over TCP. */
    USUAL_WINDOW_BYTES = 4 * HVD_SCHEDULE_MESSAGE_BYTES,
    STEPS = 8, /* of a tick, at most */
    ALIGNED_ELEMENTS = 64,
};

static struct hvd_range piece_of(struct hvd_range whole, int64_t number, int64_t most)
{
    struct hvd_range slice = {whole.begin + number * most, most};

    return hvd_range_common(whole, slice);
}

/* Where part 0 of a piece is, or part 1. */
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

/* The messages of one range, each of a piece at most. */
static uint64_t message_count(const struct hvd_pair_setup *setup, struct hvd_range range,
                              int64_t piece)
{
    int64_t all = hvd_divide_up(range.count, setup->piece_elements);

    return (uint64_t)(piece < all ? piece + 1 : all);
}

/* Until its memory is free and its result is there. */
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

/* As few pieces as a longest one allows, of like size. */
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
        return hvd_fail(err, HVD_ERR_ARG, "no two elements of %zu bytes fit a slot",
                        bytes);
    }
    choose_ranges(schedule);
    choose_pieces(schedule);
    schedule->emit = emit_pair;
    schedule->facts.ticks = schedule->setup.pair.pieces;
    schedule->facts.signals = 0;
    schedule->step_capacity = STEPS;
    return 0;
}
