/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of cross-memory attach that allgather, alltoall and broadcast have in
 * common. */
#include "collectives/schedule/schedule_cma.h"

#include "collectives/schedule/schedule_steps.h"

bool hvd_cma_fits(const struct hvd_schedule *schedule, int64_t bytes)
{
    const struct hvd_schedule_query *query = &schedule->query;
    const struct hvd_geometry *geometry = &query->geometry;
    size_t addresses = (size_t)schedule->local_size * sizeof(uint64_t);

    return geometry->has_single_copy && bytes > 0 && schedule->local_size > 1 &&
           query->layout->nodes == 1 && addresses <= geometry->slot_bytes;
}

struct hvd_range hvd_cma_piece(const struct hvd_schedule *schedule,
                               struct hvd_range whole, int64_t number)
{
    int64_t bytes = schedule->setup.cma.piece_bytes;

    return hvd_range_common(whole,
                            (struct hvd_range){whole.begin + number * bytes, bytes});
}

static int64_t pieces_of(const struct hvd_schedule *schedule, int64_t bytes)
{
    return hvd_divide_up(bytes, schedule->setup.cma.piece_bytes);
}

static void set_up(struct hvd_schedule *schedule)
{
    schedule->facts.signals = HVD_CMA_SIGNALS;
    schedule->setup.cma.piece_bytes = (int64_t)schedule->query.geometry.slot_bytes;
    schedule->step_capacity = 8 + 3 * schedule->local_size;
}

/* --- blocks --- */

static bool is_gather(const struct hvd_schedule *schedule)
{
    return schedule->query.collective == HVD_COLL_ALLGATHER;
}

struct hvd_location hvd_cma_offer(const struct hvd_schedule *schedule, int owner,
                                  int other)
{
    return is_gather(schedule) ? hvd_location_of(HVD_LOCATION_LINE, owner, 0, 0)
                               : hvd_location_of(HVD_LOCATION_IN, owner, 0,
                                                 (size_t)other * sizeof(uint64_t));
}

struct hvd_range hvd_cma_block(const struct hvd_schedule *schedule, const int64_t *bounds,
                               int local_rank)
{
    int rank = hvd_layout_rank(schedule->query.layout, schedule->node, local_rank);

    return (struct hvd_range){bounds[rank], bounds[rank + 1] - bounds[rank]};
}

static void offer_gathered(struct hvd_schedule *schedule, bool is_output)
{
    const struct hvd_schedule_query *query = &schedule->query;
    int64_t all = query->blocks[query->layout->size];
    int64_t block = hvd_cma_block(schedule, query->blocks, schedule->local_rank).count;

    hvd_emit_offer(schedule, is_output, 0, (size_t)(is_output ? all : block),
                   hvd_cma_offer(schedule, schedule->local_rank, 0));
}

static void offer_blocks(struct hvd_schedule *schedule, bool is_output)
{
    const struct hvd_schedule_query *query = &schedule->query;

    for (int i = 0; i < schedule->local_size; i++) {
        struct hvd_range block =
            hvd_cma_block(schedule, is_output ? query->blocks : query->send, i);

        hvd_emit_offer(schedule, is_output, block.begin, (size_t)block.count,
                       hvd_cma_offer(schedule, schedule->local_rank, i));
    }
}

static void copy_own(struct hvd_schedule *schedule, int64_t number)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_range block = hvd_cma_block(schedule, query->blocks, schedule->local_rank);
    struct hvd_range piece = hvd_cma_piece(schedule, block, number);
    int64_t input = is_gather(schedule) ? 0 : query->send[query->rank];

    hvd_emit_copy(schedule, input + piece.begin - block.begin, piece.begin,
                  (size_t)piece.count);
}

static void begin_blocks(struct hvd_schedule *schedule)
{
    bool is_output = schedule->setup.cma.blocks->is_output;

    hvd_emit_wait_all(schedule, 0);
    if (is_gather(schedule)) {
        offer_gathered(schedule, is_output);
    } else {
        offer_blocks(schedule, is_output);
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
        schedule->setup.cma.blocks->move(schedule, other, tick);
    }
    if (tick == schedule->facts.ticks - 1) {
        hvd_emit_sync(schedule);
    }
}

void hvd_cma_blocks_set_up(struct hvd_schedule *schedule,
                           const struct hvd_cma_blocks *blocks)
{
    set_up(schedule);
    schedule->setup.cma.blocks = blocks;
    schedule->emit = emit_blocks;
    schedule->facts.ticks = pieces_of(schedule, schedule->query.max_block);
}

/* --- broadcast --- */

static int root_of(const struct hvd_schedule *schedule)
{
    return schedule->query.layout->local_rank[schedule->query.root];
}

static struct hvd_location line_of(int local_rank)
{
    return hvd_location_of(HVD_LOCATION_LINE, local_rank, 0, 0);
}

static void begin_broadcast(struct hvd_schedule *schedule)
{
    bool is_root = schedule->local_rank == root_of(schedule);

    hvd_emit_wait_all(schedule, 0);
    if (is_root || schedule->setup.cma.stores > 0) {
        hvd_emit_offer(schedule, !is_root, 0, (size_t)schedule->query.bytes,
                       line_of(schedule->local_rank));
    }
    hvd_emit_signal(schedule);
}

static void store_pieces(struct hvd_schedule *schedule, int64_t number)
{
    const struct hvd_cma_setup *setup = &schedule->setup.cma;
    struct hvd_range stored = {setup->fetched, schedule->query.bytes - setup->fetched};
    struct hvd_range piece = hvd_cma_piece(schedule, stored, number);

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
    const struct hvd_cma_setup *setup = &schedule->setup.cma;
    struct hvd_range all = {0, schedule->query.bytes};

    if (tick == 0) {
        begin_broadcast(schedule);
    }
    if (tick < setup->stores) {
        store_pieces(schedule, tick);
    } else {
        struct hvd_range piece = hvd_cma_piece(schedule, all, tick - setup->stores);

        hvd_emit_copy(schedule, piece.begin, piece.begin, (size_t)piece.count);
    }
    if (tick == (setup->stores > 0 ? setup->stores - 1 : 0)) {
        hvd_emit_signal(schedule);
    }
    if (tick == schedule->facts.ticks - 1) {
        hvd_emit_wait_all(schedule, HVD_CMA_SIGNALS);
    }
}

static void emit_other(struct hvd_schedule *schedule, int64_t tick)
{
    int root = root_of(schedule), size = schedule->local_size;
    int64_t number = (schedule->local_rank - root - 1 + size) % size;
    int64_t begin = number * schedule->facts.ticks / (size - 1);
    struct hvd_range fetched = {0, schedule->setup.cma.fetched};
    struct hvd_range piece =
        hvd_cma_piece(schedule, fetched, (begin + tick) % schedule->facts.ticks);

    if (tick == 0) {
        begin_broadcast(schedule);
        hvd_emit_wait(schedule, root, 1);
    }
    hvd_emit_fetch(schedule, line_of(root), piece.begin, piece.begin,
                   (size_t)piece.count);
    if (tick == schedule->facts.ticks - 1) {
        hvd_emit_signal(schedule);
        if (schedule->setup.cma.stores > 0) {
            hvd_emit_wait(schedule, root, HVD_CMA_SIGNALS);
        }
    }
}

void hvd_cma_broadcast_set_up(struct hvd_schedule *schedule, int64_t fetched)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_cma_setup *setup = &schedule->setup.cma;
    bool is_root = query->rank == query->root;

    set_up(schedule);
    setup->fetched = fetched;
    setup->stores = pieces_of(schedule, query->bytes - fetched);
    schedule->emit = is_root ? emit_root : emit_other;
    schedule->facts.ticks = is_root ? setup->stores + pieces_of(schedule, query->bytes)
                                    : pieces_of(schedule, fetched);
}
