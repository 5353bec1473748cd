/* SPDX-License-Identifier: Apache-2.0 */
/* Copy in, copy out (CICO): allgather and alltoall on one node through slots of shared
 * memory, with two copies. A tick moves one piece of every block:
 *
 *   PUT my pieces; sync; COPY my own block; GET the pieces of the others
 *
 * The schedule is open (schedule.h): the sync of a tick also tells that all ranks have
 * read the pieces of the previous tick. */
#include "collectives/schedule/schedule_parts.h"
#include "collectives/schedule/schedule_steps.h"
#include "gpu_binding/base/attr.h"

enum {
    ALIGNMENT = 64,
};

static bool is_gather(const struct hvd_schedule *schedule)
{
    return schedule->query.collective == HVD_COLL_ALLGATHER;
}

/* Returns how many pieces share a slot: an allgather has one piece for all ranks, an
 * alltoall one for each local rank. */
static int pieces_each(const struct hvd_schedule *schedule)
{
    return is_gather(schedule) ? 1 : schedule->local_size;
}

/* Returns the most bytes that a piece may have. */
static int64_t room_for_piece(const struct hvd_schedule *schedule)
{
    int64_t room = (int64_t)schedule->query.geometry.slot_bytes / pieces_each(schedule);

    return room / ALIGNMENT * ALIGNMENT;
}

bool hvd_cico_fits(const struct hvd_schedule *schedule)
{
    return schedule->query.layout->nodes == 1 && room_for_piece(schedule) > 0;
}

static struct hvd_location location_of(const struct hvd_schedule *schedule, int64_t tick,
                                       int owner, int reader)
{
    const struct hvd_cico_setup *setup = &schedule->setup.cico;
    size_t offset = is_gather(schedule) ? 0 : (size_t)reader * (size_t)setup->piece_bytes;

    return hvd_location_of(HVD_LOCATION_IN, owner,
                           (int)(tick % schedule->query.geometry.slots), offset);
}

/* Returns piece number `tick` of block [bounds[rank], bounds[rank + 1]). */
static struct hvd_range piece_of(const struct hvd_schedule *schedule,
                                 const int64_t *bounds, int rank, int64_t tick)
{
    int64_t bytes = schedule->setup.cico.piece_bytes;
    struct hvd_range block = {bounds[rank], bounds[rank + 1] - bounds[rank]};

    return hvd_range_common(block, (struct hvd_range){block.begin + tick * bytes, bytes});
}

static void put_blocks(struct hvd_schedule *schedule, int64_t tick)
{
    const struct hvd_schedule_query *query = &schedule->query;
    int me = schedule->local_rank;

    if (is_gather(schedule)) {
        struct hvd_range piece = piece_of(schedule, query->blocks, query->rank, tick);

        if (schedule->local_size > 1) {
            hvd_emit_put(schedule, piece.begin - query->blocks[query->rank],
                         (size_t)piece.count, location_of(schedule, tick, me, me));
        }
        return;
    }
    for (int i = 1; i < schedule->local_size; i++) {
        int other = (me + i) % schedule->local_size;
        int rank = hvd_layout_rank(query->layout, schedule->node, other);
        struct hvd_range piece = piece_of(schedule, query->send, rank, tick);

        hvd_emit_put(schedule, piece.begin, (size_t)piece.count,
                     location_of(schedule, tick, me, other));
    }
}

static void get_blocks(struct hvd_schedule *schedule, int64_t tick)
{
    const struct hvd_schedule_query *query = &schedule->query;
    int me = schedule->local_rank;
    struct hvd_range own = piece_of(schedule, query->blocks, query->rank, tick);
    int64_t input = is_gather(schedule) ? 0 : query->send[query->rank];

    hvd_emit_copy(schedule, input + own.begin - query->blocks[query->rank], own.begin,
                  (size_t)own.count);
    for (int i = 1; i < schedule->local_size; i++) {
        int other = (me + i) % schedule->local_size;
        int rank = hvd_layout_rank(query->layout, schedule->node, other);
        struct hvd_range piece = piece_of(schedule, query->blocks, rank, tick);

        hvd_emit_get(schedule, location_of(schedule, tick, other, me), piece.begin,
                     (size_t)piece.count);
    }
}

static void emit_cico(struct hvd_schedule *schedule, int64_t tick)
{
    if (tick == 0) {
        hvd_emit_wait_all(schedule, 0);
    }
    put_blocks(schedule, tick);
    hvd_emit_sync(schedule);
    get_blocks(schedule, tick);
}

int hvd_cico_set_up(struct hvd_schedule *schedule, struct hvd_error *err HVD_UNUSED)
{
    struct hvd_cico_setup *setup = &schedule->setup.cico;
    int64_t room = room_for_piece(schedule), most = schedule->query.max_block;
    int64_t chunk = (int64_t)schedule->choice.chunk_bytes;

    room = chunk > 0 && chunk < room ? chunk : room;
    setup->piece_bytes = most < room ? most : room;
    schedule->emit = emit_cico;
    schedule->facts.ticks = most > 0 ? hvd_divide_up(most, setup->piece_bytes) : 0;
    schedule->facts.signals = (uint64_t)schedule->facts.ticks;
    schedule->facts.turns = schedule->facts.ticks;
    schedule->step_capacity = 8 + 2 * schedule->local_size;
    return 0;
}
