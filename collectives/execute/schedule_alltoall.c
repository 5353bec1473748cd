/* SPDX-License-Identifier: Apache-2.0 */
/* Alltoall of blocks of any sizes.
 *
 * A round moves one chunk of some blocks: those to the ranks at the round's distances ahead of
 * me, and those from the ranks as far behind me.
 *
 *   local rank: PUT into my IN; he copies it out from there
 *   other node: PUT into SEND, message to his RECV; he copies it out from there
 *
 * On one node blocks go other ways (schedule_single.c, schedule_local.c). */
#include "collectives/execute/schedule_rounds.h"
#include "collectives/execute/schedule_steps.h"

static int rank_at(const struct hvd_schedule *schedule, int64_t distance)
{
    int size = schedule->query.layout->size;

    return (int)((schedule->query.rank + distance + size) % size);
}

static bool is_local(const struct hvd_schedule *schedule, int rank)
{
    return schedule->query.layout->node[rank] == schedule->node;
}

/* Where a round has the piece of one of its distances, in any place. */
static struct hvd_place place_at(const struct hvd_schedule *schedule, int64_t round,
                                 int64_t distance, enum hvd_place_kind kind)
{
    int64_t nth = distance - hvd_round_distances(schedule, round).begin;

    return hvd_place_of(kind, schedule->local_rank, hvd_round_slot(schedule, round),
                        (size_t)(nth * schedule->plan.rounds.chunk_bytes));
}

static struct hvd_range piece_of(const struct hvd_schedule *schedule, int64_t round,
                                 const int64_t *bounds, int rank)
{
    return hvd_round_piece(schedule, bounds, rank, hvd_round_chunk(schedule, round));
}

static void receive(struct hvd_schedule *schedule, int64_t round, int64_t distance)
{
    int peer = rank_at(schedule, -distance);
    struct hvd_range piece = piece_of(schedule, round, schedule->query.blocks, peer);

    if (!is_local(schedule, peer)) {
        hvd_emit_recv(schedule, place_at(schedule, round, distance, HVD_PLACE_RECV),
                      (size_t)piece.count, peer);
    }
}

static void send(struct hvd_schedule *schedule, int64_t round, int64_t distance)
{
    int peer = rank_at(schedule, distance);
    struct hvd_range piece = piece_of(schedule, round, schedule->query.send, peer);
    bool is_near = is_local(schedule, peer);
    struct hvd_place place =
        place_at(schedule, round, distance, is_near ? HVD_PLACE_IN : HVD_PLACE_SEND);

    hvd_emit_put(schedule, piece.begin, (size_t)piece.count, place);
    if (!is_near) {
        hvd_emit_send(schedule, place, (size_t)piece.count, peer);
    }
}

static void post(struct hvd_schedule *schedule, int64_t round)
{
    struct hvd_range distances = hvd_round_distances(schedule, round);
    int slot = hvd_round_slot(schedule, round);

    for (int64_t i = 0; i < distances.count; i++) {
        receive(schedule, round, distances.begin + i);
    }
    hvd_emit_wait_sends(schedule, schedule->marks[slot].sends);
    for (int64_t i = 0; i < distances.count; i++) {
        send(schedule, round, distances.begin + i);
    }
}

static void collect(struct hvd_schedule *schedule, int64_t round)
{
    struct hvd_range distances = hvd_round_distances(schedule, round);

    for (int64_t i = 0; i < distances.count; i++) {
        int64_t distance = distances.begin + i;
        int peer = rank_at(schedule, -distance);
        struct hvd_range piece = piece_of(schedule, round, schedule->query.blocks, peer);
        struct hvd_place from = place_at(schedule, round, distance, HVD_PLACE_RECV);

        if (is_local(schedule, peer)) {
            from.kind = HVD_PLACE_IN;
            from.local_rank = schedule->query.layout->local_rank[peer];
        }
        hvd_emit_get(schedule, from, piece.begin, (size_t)piece.count);
    }
}

static void emit(struct hvd_schedule *schedule, int64_t tick)
{
    hvd_rounds_emit(schedule, tick, post, collect);
}

int hvd_schedule_plan_alltoall(struct hvd_schedule *schedule, struct hvd_error *err)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_rounds_plan *plan = &schedule->plan.rounds;
    int size = query->layout->size;
    int64_t most_in = 0;
    int64_t most_out = 0;
    int status = hvd_blocks_check(query->blocks, size, &most_in, err);

    if (status == 0) {
        status = hvd_blocks_check(query->send, size, &most_out, err);
    }
    if (status != 0) {
        return status;
    }
    if (most_in > query->max_block || most_out > query->max_block) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "a block of %lld bytes, announced were at most %lld",
                        (long long)(most_in > most_out ? most_in : most_out),
                        (long long)query->max_block);
    }
    if (hvd_schedule_is_single(schedule, query->max_block)) {
        hvd_schedule_plan_single_blocks(schedule, query->max_block);
        return 0;
    }
    if (hvd_schedule_is_local(schedule)) {
        hvd_schedule_plan_local(schedule, query->max_block);
        return 0;
    }
    plan->distances = size;
    plan->holders = 1;
    hvd_schedule_plan_rounds(schedule, query->max_block, 1);
    schedule->name = "shifts";
    schedule->emit = emit;
    return 0;
}
