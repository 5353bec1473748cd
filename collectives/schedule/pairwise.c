/* SPDX-License-Identifier: Apache-2.0 */
/* Pairwise-exchange alltoall of blocks of any sizes, across nodes: in step d every rank
 * sends to the rank d places ahead of it and receives from the rank d places behind.
 *
 * A round moves one chunk of the blocks of a group of distances d.
 *
 *   peer on this node:     PUT into my IN; the peer copies from there
 *   peer on another node:  PUT into SEND; message to its RECV; it copies from there
 *
 * On one node cico.c, cma_read.c or cma_write.c are used instead. */
#include "collectives/schedule/schedule_rounds.h"
#include "collectives/schedule/schedule_steps.h"
#include "gpu_binding/base/attr.h"

static int rank_at(const struct hvd_schedule *schedule, int64_t distance)
{
    int size = schedule->query.layout->size;

    return (int)((schedule->query.rank + distance + size) % size);
}

static bool is_local(const struct hvd_schedule *schedule, int rank)
{
    return schedule->query.layout->node[rank] == schedule->node;
}

/* Returns where a round keeps the piece of one of its distances, in a location of the
 * given kind. */
static struct hvd_location location_at(const struct hvd_schedule *schedule, int64_t round,
                                       int64_t distance, enum hvd_location_kind kind)
{
    int64_t nth = distance - hvd_round_distances(schedule, round).begin;

    return hvd_location_of(kind, schedule->local_rank, hvd_round_slot(schedule, round),
                           (size_t)(nth * schedule->setup.rounds.chunk_bytes));
}

static struct hvd_range piece_of(const struct hvd_schedule *schedule, int64_t round,
                                 const int64_t *bounds, int rank)
{
    return hvd_round_piece(schedule, bounds, rank, hvd_round_chunk(schedule, round));
}

static void receive_piece(struct hvd_schedule *schedule, int64_t round, int64_t distance)
{
    int peer = rank_at(schedule, -distance);
    struct hvd_range piece = piece_of(schedule, round, schedule->query.blocks, peer);

    if (!is_local(schedule, peer)) {
        hvd_emit_recv(schedule, location_at(schedule, round, distance, HVD_LOCATION_RECV),
                      (size_t)piece.count, peer);
    }
}

static void send_piece(struct hvd_schedule *schedule, int64_t round, int64_t distance)
{
    int peer = rank_at(schedule, distance);
    struct hvd_range piece = piece_of(schedule, round, schedule->query.send, peer);
    bool is_near = is_local(schedule, peer);
    struct hvd_location location = location_at(
        schedule, round, distance, is_near ? HVD_LOCATION_IN : HVD_LOCATION_SEND);

    hvd_emit_put(schedule, piece.begin, (size_t)piece.count, location);
    if (!is_near) {
        hvd_emit_send(schedule, location, (size_t)piece.count, peer);
    }
}

static void post_round(struct hvd_schedule *schedule, int64_t round)
{
    struct hvd_range distances = hvd_round_distances(schedule, round);
    int slot = hvd_round_slot(schedule, round);

    for (int64_t i = 0; i < distances.count; i++) {
        receive_piece(schedule, round, distances.begin + i);
    }
    hvd_emit_wait_sends(schedule, schedule->marks[slot].sends);
    for (int64_t i = 0; i < distances.count; i++) {
        send_piece(schedule, round, distances.begin + i);
    }
}

static void collect_round(struct hvd_schedule *schedule, int64_t round)
{
    struct hvd_range distances = hvd_round_distances(schedule, round);

    for (int64_t i = 0; i < distances.count; i++) {
        int64_t distance = distances.begin + i;
        int peer = rank_at(schedule, -distance);
        struct hvd_range piece = piece_of(schedule, round, schedule->query.blocks, peer);
        struct hvd_location from =
            location_at(schedule, round, distance, HVD_LOCATION_RECV);

        if (is_local(schedule, peer)) {
            from.kind = HVD_LOCATION_IN;
            from.local_rank = schedule->query.layout->local_rank[peer];
        }
        hvd_emit_get(schedule, from, piece.begin, (size_t)piece.count);
    }
}

static void emit_pairwise(struct hvd_schedule *schedule, int64_t tick)
{
    hvd_rounds_emit(schedule, tick, post_round, collect_round);
}

int hvd_pairwise_set_up(struct hvd_schedule *schedule, struct hvd_error *err HVD_UNUSED)
{
    struct hvd_rounds_setup *setup = &schedule->setup.rounds;

    setup->distances = schedule->query.layout->size;
    setup->holders = 1;
    hvd_rounds_set_up(schedule, 1);
    schedule->emit = emit_pairwise;
    return 0;
}
