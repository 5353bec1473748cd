/* SPDX-License-Identifier: Apache-2.0 */
/* The rhythm of allgather and alltoall. In tick t:
 *
 *   wait for the messages of round t - lag; sync
 *   post round t: fill IN, send, receive
 *   collect round t - lag: copy to the output
 *
 * lag <= slots - 1, so that the sync of tick t tells that every local rank has collected round
 * t - slots, whose slots round t overwrites. All ranks post round t in tick t and wait for
 * nothing that is posted later: no deadlock. */
#include "collectives/execute/schedule_rounds.h"

#include "collectives/execute/schedule_steps.h"

enum {
    MOST_PIECES = 256, /* that a round moves, to bound the steps of a tick */
    ALIGNMENT = 64,
};

/* The chunk: as much of a block as fits, in chunks of equal size on cache lines. */
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

void hvd_schedule_plan_rounds(struct hvd_schedule *schedule, int64_t most_bytes,
                              int pieces)
{
    const struct hvd_geometry *geometry = &schedule->query.geometry;
    struct hvd_rounds_plan *plan = &schedule->plan.rounds;
    int64_t room = (int64_t)geometry->slot_bytes / plan->holders;
    int64_t longest = (int64_t)schedule->choice.chunk_bytes;
    int64_t together = pieces < MOST_PIECES ? MOST_PIECES / pieces : 1;

    if (most_bytes == 0) {
        schedule->step_capacity = 1;
        return;
    }
    plan->chunk_bytes =
        choose_chunk(most_bytes, longest > 0 && longest < room ? longest : room);
    together = together < room / plan->chunk_bytes ? together : room / plan->chunk_bytes;
    together = together < plan->distances ? together : plan->distances;
    plan->group_size = (int)together;
    plan->groups = (int)hvd_divide_up(plan->distances, together);
    plan->rounds = plan->groups * hvd_divide_up(most_bytes, plan->chunk_bytes);
    plan->lag = geometry->slots - 1;
    plan->lag = plan->lag < plan->rounds ? plan->lag : (int)plan->rounds;
    schedule->ticks = plan->rounds + plan->lag;
    schedule->signals = (uint64_t)plan->rounds + 1;
    schedule->step_capacity = 16 + plan->group_size * (4 + 2 * pieces);
}

struct hvd_range hvd_round_distances(const struct hvd_schedule *schedule, int64_t round)
{
    const struct hvd_rounds_plan *plan = &schedule->plan.rounds;
    struct hvd_range all = {0, plan->distances};
    struct hvd_range group = {round % plan->groups * plan->group_size, plan->group_size};

    return hvd_range_common(all, group);
}

int64_t hvd_round_chunk(const struct hvd_schedule *schedule, int64_t round)
{
    return round / schedule->plan.rounds.groups;
}

struct hvd_range hvd_round_piece(const struct hvd_schedule *schedule,
                                 const int64_t *bounds, int rank, int64_t chunk)
{
    int64_t bytes = schedule->plan.rounds.chunk_bytes;
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
    const struct hvd_rounds_plan *plan = &schedule->plan.rounds;
    int64_t ending = tick - plan->lag;

    if (tick == 0) {
        hvd_emit_wait_all(schedule, 0);
    }
    if (ending >= 0) {
        int slot = hvd_round_slot(schedule, ending);

        hvd_emit_wait_recvs(schedule, schedule->marks[slot].recvs);
        hvd_emit_sync(schedule);
    }
    if (tick < plan->rounds) {
        post(schedule, tick);
        schedule->marks[hvd_round_slot(schedule, tick)] = schedule->posted;
    }
    if (ending >= 0) {
        collect(schedule, ending);
    }
    if (tick == schedule->ticks - 1) {
        hvd_emit_signal(schedule);
        hvd_emit_wait_sends(schedule, schedule->posted.sends);
    }
}

int hvd_blocks_check(const int64_t *bounds, int count, int64_t *most,
                     struct hvd_error *err)
{
    int64_t largest = 0;

    for (int rank = 0; rank < count; rank++) {
        int64_t bytes = bounds[rank + 1] - bounds[rank];

        if (bounds[0] != 0 || bounds[rank + 1] < bounds[rank]) {
            return hvd_fail(
                err, HVD_ERR_ARG,
                "the block of rank %d is bytes %lld to %lld: expected blocks that "
                "start at 0 and follow each other",
                rank, (long long)bounds[rank], (long long)bounds[rank + 1]);
        }
        largest = bytes > largest ? bytes : largest;
    }
    *most = largest;
    return 0;
}
