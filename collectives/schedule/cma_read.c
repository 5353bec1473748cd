/* SPDX-License-Identifier: Apache-2.0 */
/* Large blocks on one node, by a single copy: who wants a block reads it where it is, or who has
 * it writes it where it is wanted.
 *
 *   allgather of two ranks, alltoall
 *     OFFER my input; SIGNAL
 *     COPY my own block; FETCH those of the others, once each has signalled
 *     SIGNAL; WAIT until all have done so: then my input is mine again
 *
 *   "stores" of allgather and alltoall: who has a block writes it where it is wanted
 *     OFFER my output; SIGNAL
 *     COPY my own block; STORE it, or those for the others, once each has signalled
 *     SIGNAL; WAIT until all have done so: then my output is complete
 *
 *   broadcast among n ranks, where the root would be idle: "stores" lets it STORE the last n-th
 *   to each of the others, while they fetch the rest
 *     root:    OFFER its input; SIGNAL; STORE, as soon as each has signalled; SIGNAL
 *              COPY to its own output; WAIT for all
 *     others:  OFFER their output; SIGNAL; FETCH, as soon as the root has; SIGNAL; WAIT for it
 *
 * All begin at different places, so that no memory is read by all at once: the kernel takes hold of
 * each page. Blocks go in pieces, so that other teams get their turn in between. */
#include "collectives/schedule/schedule_state.h"
#include "collectives/schedule/schedule_parts.h"
#include "collectives/schedule/schedule_steps.h"
#include "gpu_binding/base/attr.h"

enum {
    SIGNALS = 2,
    ALIGNMENT = 64,
};

bool hvd_single_copy_fits(const struct hvd_schedule *schedule, int64_t bytes)
{
    const struct hvd_schedule_query *query = &schedule->query;
    const struct hvd_geometry *geometry = &query->geometry;
    size_t addresses = (size_t)schedule->local_size * sizeof(uint64_t);
    bool is_chosen = schedule->choice.algorithm == HVD_ALGORITHM_SINGLE ||
                     schedule->choice.algorithm == HVD_ALGORITHM_STORES;

    return is_chosen && geometry->has_single_copy && bytes > 0 &&
           schedule->local_size > 1 && query->layout->nodes == 1 &&
           addresses <= geometry->slot_bytes;
}

static int rank_of(const struct hvd_schedule *schedule, int local_rank)
{
    return hvd_layout_rank(schedule->query.layout, schedule->node, local_rank);
}

static struct hvd_range piece_of(const struct hvd_schedule *schedule,
                                 struct hvd_range whole, int64_t number)
{
    int64_t bytes = schedule->setup.single_copy.piece_bytes;

    return hvd_range_common(whole,
                            (struct hvd_range){whole.begin + number * bytes, bytes});
}

static int64_t pieces_of(const struct hvd_schedule *schedule, int64_t bytes)
{
    return hvd_divide_up(bytes, schedule->setup.single_copy.piece_bytes);
}

/* --- blocks ---------------------------------------------------------------------------- */

static bool is_gather(const struct hvd_schedule *schedule)
{
    return schedule->query.collective == HVD_COLL_ALLGATHER;
}

static bool is_stored(const struct hvd_schedule *schedule)
{
    return schedule->choice.algorithm == HVD_ALGORITHM_STORES;
}

/* Where an owner leaves for another one the address of a block, or of room for his. Of what is
 * gathered one address is for all: of the block, or of the whole output. */
static struct hvd_place offer_at(const struct hvd_schedule *schedule, int owner,
                                 int other)
{
    return is_gather(schedule)
               ? hvd_place_of(HVD_PLACE_LINE, owner, 0, 0)
               : hvd_place_of(HVD_PLACE_IN, owner, 0, (size_t)other * sizeof(uint64_t));
}

static struct hvd_range block_of(const int64_t *bounds, int rank)
{
    return (struct hvd_range){bounds[rank], bounds[rank + 1] - bounds[rank]};
}

static void offer_gathered(struct hvd_schedule *schedule)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_range all = {0, query->blocks[query->layout->size]};
    struct hvd_range offered =
        is_stored(schedule) ? all : block_of(query->blocks, query->rank);

    hvd_emit_offer(schedule, is_stored(schedule), 0, (size_t)offered.count,
                   offer_at(schedule, schedule->local_rank, 0));
}

static void offer_blocks(struct hvd_schedule *schedule)
{
    const struct hvd_schedule_query *query = &schedule->query;
    const int64_t *bounds = is_stored(schedule) ? query->blocks : query->send;

    for (int i = 0; i < schedule->local_size; i++) {
        struct hvd_range block = block_of(bounds, rank_of(schedule, i));

        hvd_emit_offer(schedule, is_stored(schedule), block.begin, (size_t)block.count,
                       offer_at(schedule, schedule->local_rank, i));
    }
}

static void copy_own(struct hvd_schedule *schedule, int64_t number)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_range block = block_of(query->blocks, query->rank);
    struct hvd_range piece = piece_of(schedule, block, number);
    int64_t input = is_gather(schedule) ? 0 : query->send[query->rank];

    hvd_emit_copy(schedule, input + piece.begin - block.begin, piece.begin,
                  (size_t)piece.count);
}

static void fetch_piece(struct hvd_schedule *schedule, int owner, int64_t number)
{
    struct hvd_range block = block_of(schedule->query.blocks, rank_of(schedule, owner));
    struct hvd_range piece = piece_of(schedule, block, number);

    hvd_emit_fetch(schedule, offer_at(schedule, owner, schedule->local_rank),
                   piece.begin - block.begin, piece.begin, (size_t)piece.count);
}

static void store_piece(struct hvd_schedule *schedule, int other, int64_t number)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_place offer = offer_at(schedule, other, schedule->local_rank);
    struct hvd_range block = is_gather(schedule)
                                 ? block_of(query->blocks, query->rank)
                                 : block_of(query->send, rank_of(schedule, other));
    struct hvd_range piece = piece_of(schedule, block, number);
    int64_t within = piece.begin - block.begin;

    if (is_gather(schedule)) {
        hvd_emit_store(schedule, offer, piece.begin, within, (size_t)piece.count);
    } else {
        hvd_emit_store(schedule, offer, within, piece.begin, (size_t)piece.count);
    }
}

static void begin_blocks(struct hvd_schedule *schedule)
{
    hvd_emit_wait_all(schedule, 0);
    if (is_gather(schedule)) {
        offer_gathered(schedule);
    } else {
        offer_blocks(schedule);
    }
    hvd_emit_signal(schedule);
}

static void emit_blocks(struct hvd_schedule *schedule, int64_t tick)
{
    if (tick == 0) {
        begin_blocks(schedule);
    }
    copy_own(schedule, tick);
    for (int i = 1; i < schedule->local_size; i++) {
        int other = (schedule->local_rank + i) % schedule->local_size;

        if (tick == 0) {
            hvd_emit_wait(schedule, other, 1);
        }
        if (is_stored(schedule)) {
            store_piece(schedule, other, tick);
        } else {
            fetch_piece(schedule, other, tick);
        }
    }
    if (tick == schedule->facts.ticks - 1) {
        hvd_emit_sync(schedule);
    }
}

static void set_up(struct hvd_schedule *schedule)
{
    schedule->facts.name = "single copy";
    schedule->facts.signals = SIGNALS;
    schedule->setup.single_copy.piece_bytes =
        (int64_t)schedule->query.geometry.slot_bytes;
    schedule->step_capacity = 8 + 3 * schedule->local_size;
}

int hvd_single_blocks_set_up(struct hvd_schedule *schedule,
                             struct hvd_error *err HVD_UNUSED)
{
    set_up(schedule);
    schedule->emit = emit_blocks;
    schedule->facts.ticks = pieces_of(schedule, schedule->query.max_block);
    return 0;
}

/* --- broadcast ------------------------------------------------------------------------- */

static int root_of(const struct hvd_schedule *schedule)
{
    return schedule->query.layout->local_rank[schedule->query.root];
}

static struct hvd_place line_of(int local_rank)
{
    return hvd_place_of(HVD_PLACE_LINE, local_rank, 0, 0);
}

static void begin_broadcast(struct hvd_schedule *schedule)
{
    bool is_root = schedule->local_rank == root_of(schedule);

    hvd_emit_wait_all(schedule, 0);
    if (is_root || schedule->setup.single_copy.stores > 0) {
        hvd_emit_offer(schedule, !is_root, 0, (size_t)schedule->query.bytes,
                       line_of(schedule->local_rank));
    }
    hvd_emit_signal(schedule);
}

static void store_pieces(struct hvd_schedule *schedule, int64_t number)
{
    const struct hvd_single_copy_setup *setup = &schedule->setup.single_copy;
    struct hvd_range stored = {setup->fetched, schedule->query.bytes - setup->fetched};
    struct hvd_range piece = piece_of(schedule, stored, number);

    for (int i = 1; i < schedule->local_size; i++) {
        int other = (schedule->local_rank + i) % schedule->local_size;

        if (number == 0) {
            hvd_emit_wait(schedule, other, 1);
        }
        hvd_emit_store(schedule, line_of(other), piece.begin, piece.begin,
                       (size_t)piece.count);
    }
}

static void emit_root(struct hvd_schedule *schedule, int64_t tick)
{
    const struct hvd_single_copy_setup *setup = &schedule->setup.single_copy;
    struct hvd_range all = {0, schedule->query.bytes};

    if (tick == 0) {
        begin_broadcast(schedule);
    }
    if (tick < setup->stores) {
        store_pieces(schedule, tick);
    } else {
        struct hvd_range piece = piece_of(schedule, all, tick - setup->stores);

        hvd_emit_copy(schedule, piece.begin, piece.begin, (size_t)piece.count);
    }
    if (tick == (setup->stores > 0 ? setup->stores - 1 : 0)) {
        hvd_emit_signal(schedule);
    }
    if (tick == schedule->facts.ticks - 1) {
        hvd_emit_wait_all(schedule, SIGNALS);
    }
}

static void emit_other(struct hvd_schedule *schedule, int64_t tick)
{
    int root = root_of(schedule), size = schedule->local_size;
    int64_t number = (schedule->local_rank - root - 1 + size) % size;
    int64_t begin = number * schedule->facts.ticks / (size - 1);
    struct hvd_range fetched = {0, schedule->setup.single_copy.fetched};
    struct hvd_range piece =
        piece_of(schedule, fetched, (begin + tick) % schedule->facts.ticks);

    if (tick == 0) {
        begin_broadcast(schedule);
        hvd_emit_wait(schedule, root, 1);
    }
    hvd_emit_fetch(schedule, line_of(root), piece.begin, piece.begin,
                   (size_t)piece.count);
    if (tick == schedule->facts.ticks - 1) {
        hvd_emit_signal(schedule);
        if (schedule->setup.single_copy.stores > 0) {
            hvd_emit_wait(schedule, root, SIGNALS);
        }
    }
}

int hvd_single_broadcast_set_up(struct hvd_schedule *schedule,
                                struct hvd_error *err HVD_UNUSED)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_single_copy_setup *setup = &schedule->setup.single_copy;
    bool is_root = query->rank == query->root;
    int64_t share = query->bytes / schedule->local_size / ALIGNMENT * ALIGNMENT;

    set_up(schedule);
    share = schedule->choice.algorithm == HVD_ALGORITHM_STORES ? share : 0;
    setup->fetched = query->bytes - share;
    setup->stores = pieces_of(schedule, share);
    schedule->emit = is_root ? emit_root : emit_other;
    schedule->facts.ticks = is_root ? setup->stores + pieces_of(schedule, query->bytes)
                                    : pieces_of(schedule, setup->fetched);
    return 0;
}
