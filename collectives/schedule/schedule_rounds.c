/* SPDX-License-Identifier: Apache-2.0 */
/* The ticks of pairwise and ring. In tick t:
 *
 *   wait for the messages of round t - lag; sync
 *   post round t: fill IN, send, receive
 *   collect round t - lag: copy to the output
 *
 * lag <= slots - 1, so the sync of tick t tells that every local rank has collected round
 * t - slots, whose slots round t overwrites. No deadlock: all ranks post round t in tick
 * t and wait for nothing that is posted later. */
#include "collectives/schedule/schedule_rounds.h"

#include "collectives/schedule/schedule_steps.h"

enum {
    MOST_PIECES = 256, /* the most that a round moves, to bound the steps of a tick */
    ALIGNMENT = 64,
};

/* Chooses chunks of equal size, as large as fit, that begin on cache lines. */
static int64_t choose_chunk(int64_t most_bytes, int64_t room)
{
    int64_t chunk;

    if (most_bytes <= room) {
        return most_bytes;
    }
    chunk = hvd_divide_up(most_bytes, hvd_divide_up(most_bytes, room));
    chunk = hvd_divide_up(chunk, ALIGNMENT) * ALIGNMENT;
    return chunk < room ? chunk : room;
}

void hvd_rounds_set_up(struct hvd_schedule *schedule, int pieces)
{
    const struct hvd_geometry *geometry = &schedule->query.geometry;
    struct hvd_rounds_setup *setup = &schedule->setup.rounds;
    int64_t room = (int64_t)geometry->slot_bytes / setup->holders;
    int64_t longest = (int64_t)schedule->choice.chunk_bytes;
    int64_t most_bytes = schedule->query.max_block;
    int64_t together = pieces < MOST_PIECES ? MOST_PIECES / pieces : 1;

    if (most_bytes == 0) {
        schedule->step_capacity = 1;
        return;
    }
    setup->chunk_bytes =
        choose_chunk(most_bytes, longest > 0 && longest < room ? longest : room);
    together =
        together < room / setup->chunk_bytes ? together : room / setup->chunk_bytes;
    together = together < setup->distances ? together : setup->distances;
    setup->group_size = (int)together;
    setup->groups = (int)hvd_divide_up(setup->distances, together);
    setup->rounds = setup->groups * hvd_divide_up(most_bytes, setup->chunk_bytes);
    setup->lag = geometry->slots - 1;
    setup->lag = setup->lag < setup->rounds ? setup->lag : (int)setup->rounds;
    schedule->facts.ticks = setup->rounds + setup->lag;
    schedule->facts.signals = (uint64_t)setup->rounds + 1;
    schedule->step_capacity = 16 + setup->group_size * (4 + 2 * pieces);
}

struct hvd_range hvd_round_distances(const struct hvd_schedule *schedule, int64_t round)
{
    const struct hvd_rounds_setup *setup = &schedule->setup.rounds;
    struct hvd_range all = {0, setup->distances};
    struct hvd_range group = {round % setup->groups * setup->group_size,
                              setup->group_size};

    return hvd_range_common(all, group);
}

int64_t hvd_round_chunk(const struct hvd_schedule *schedule, int64_t round)
{
    return round / schedule->setup.rounds.groups;
}

struct hvd_range hvd_round_piece(const struct hvd_schedule *schedule,
                                 const int64_t *bounds, int rank, int64_t chunk)
{
    int64_t bytes = schedule->setup.rounds.chunk_bytes;
    struct hvd_range block = {bounds[rank], bounds[rank + 1] - bounds[rank]};
    struct hvd_range slice = {bounds[rank] + chunk * bytes, bytes};

    return hvd_range_common(block, slice);
}

int hvd_round_slot(const struct hvd_schedule *schedule, int64_t round)
{
    return (int)(round % schedule->query.geometry.slots);
}

void hvd_rounds_emit(struct hvd_schedule *schedule, int64_t tick, hvd_round_half *post,
                     hvd_round_half *collect)
{
    const struct hvd_rounds_setup *setup = &schedule->setup.rounds;
    int64_t ending = tick - setup->lag;

    if (tick == 0) {
        hvd_emit_wait_all(schedule, 0);
    }
    if (ending >= 0) {
        int slot = hvd_round_slot(schedule, ending);

        hvd_emit_wait_recvs(schedule, schedule->marks[slot].recvs);
        hvd_emit_sync(schedule);
    }
    if (tick < setup->rounds) {
        post(schedule, tick);
        schedule->marks[hvd_round_slot(schedule, tick)] = schedule->posted;
    }
    if (ending >= 0) {
        collect(schedule, ending);
    }
    if (tick == schedule->facts.ticks - 1) {
        hvd_emit_signal(schedule);
        hvd_emit_wait_sends(schedule, schedule->posted.sends);
    }
}
