/* SPDX-License-Identifier: Apache-2.0 */
/* Allgather of blocks of any sizes, across nodes: in step d each node sends its blocks to
 * the node d places ahead of it around the ring of nodes. Unlike in the classic ring
 * algorithm no node forwards a block.
 *
 * A round moves one chunk of the blocks of some nodes, those at a group of distances d
 * behind me.
 *
 *   distance 0: each rank PUTs its piece into IN; all local ranks copy it out from there
 *   distance d: I send my piece from IN to one rank of the node d ahead (the ranks of a
 *               node take turns, by the sender's local rank); pieces that I receive for
 *               my node go to my OUT; all local ranks copy them out from there
 *
 * So a block crosses the network once per node. On one node cico.c, cma_read.c or
 * cma_write.c are used instead. */
#include "collectives/schedule/schedule_rounds.h"
#include "collectives/schedule/schedule_steps.h"
#include "gpu_binding/base/error.h"

static int node_at(const struct hvd_schedule *schedule, int64_t distance)
{
    int nodes = schedule->query.layout->nodes;

    return (int)((schedule->node + distance + nodes) % nodes);
}

/* Returns where a piece from another node lies: in OUT of the local rank that receives
 * from its sender. */
static struct hvd_location received_at(const struct hvd_schedule *schedule, int64_t round,
                                       int64_t distance, int sender_local_rank)
{
    const struct hvd_rounds_setup *setup = &schedule->setup.rounds;
    int64_t nth = distance - hvd_round_distances(schedule, round).begin;
    int turn = sender_local_rank / schedule->local_size;
    size_t piece = (size_t)(nth * setup->holders + turn);

    return hvd_location_of(HVD_LOCATION_OUT, sender_local_rank % schedule->local_size,
                           hvd_round_slot(schedule, round),
                           piece * (size_t)setup->chunk_bytes);
}

/* Returns where a rank's own piece lies. The piece stays in one slot of IN through all
 * rounds that move this chunk. */
static struct hvd_location sent_from(const struct hvd_schedule *schedule, int64_t round,
                                     int local_rank)
{
    int64_t chunk = hvd_round_chunk(schedule, round);

    return hvd_location_of(HVD_LOCATION_IN, local_rank, hvd_round_slot(schedule, chunk),
                           0);
}

static struct hvd_range piece_of(const struct hvd_schedule *schedule, int64_t round,
                                 int rank)
{
    return hvd_round_piece(schedule, schedule->query.blocks, rank,
                           hvd_round_chunk(schedule, round));
}

static void receive_block(struct hvd_schedule *schedule, int64_t round, int64_t distance)
{
    const struct hvd_layout *layout = schedule->query.layout;
    int node = node_at(schedule, -distance);
    int senders = hvd_layout_local_size(layout, node);

    for (int i = schedule->local_rank; i < senders; i += schedule->local_size) {
        int sender = hvd_layout_rank(layout, node, i);
        struct hvd_range piece = piece_of(schedule, round, sender);

        hvd_emit_recv(schedule, received_at(schedule, round, distance, i),
                      (size_t)piece.count, sender);
    }
}

static void post_round(struct hvd_schedule *schedule, int64_t round)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_range distances = hvd_round_distances(schedule, round);
    struct hvd_range piece = piece_of(schedule, round, query->rank);
    struct hvd_location in = sent_from(schedule, round, schedule->local_rank);
    struct hvd_schedule_mark *last_sends = &schedule->final_marks[in.slot];

    if (distances.begin == 0) {
        hvd_emit_wait_sends(schedule, last_sends->sends);
        hvd_emit_put(schedule, piece.begin - query->blocks[query->rank],
                     (size_t)piece.count, in);
        distances = (struct hvd_range){1, distances.count - 1};
    }
    for (int64_t i = 0; i < distances.count; i++) {
        receive_block(schedule, round, distances.begin + i);
    }
    for (int64_t i = 0; i < distances.count; i++) {
        int node = node_at(schedule, distances.begin + i);
        int peer = hvd_slice_owner(query->layout, node, schedule->local_rank);

        hvd_emit_send(schedule, in, (size_t)piece.count, peer);
    }
    *last_sends = schedule->posted;
}

static void collect_round(struct hvd_schedule *schedule, int64_t round)
{
    const struct hvd_layout *layout = schedule->query.layout;
    struct hvd_range distances = hvd_round_distances(schedule, round);

    for (int64_t i = 0; i < distances.count; i++) {
        int64_t distance = distances.begin + i;
        int node = node_at(schedule, -distance);

        for (int j = 0; j < hvd_layout_local_size(layout, node); j++) {
            int sender = hvd_layout_rank(layout, node, j);
            struct hvd_range piece = piece_of(schedule, round, sender);
            struct hvd_location from = distance == 0
                                           ? sent_from(schedule, round, j)
                                           : received_at(schedule, round, distance, j);

            hvd_emit_get(schedule, from, piece.begin, (size_t)piece.count);
        }
    }
}

static void emit_ring(struct hvd_schedule *schedule, int64_t tick)
{
    hvd_rounds_emit(schedule, tick, post_round, collect_round);
}

int hvd_ring_set_up(struct hvd_schedule *schedule, struct hvd_error *err)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_rounds_setup *setup = &schedule->setup.rounds;
    int widest = hvd_slices_widest(query->layout);

    setup->distances = query->layout->nodes;
    setup->holders = hvd_slices_each(query->layout, widest);
    if ((size_t)setup->holders > query->geometry.slot_bytes) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "slots of %zu bytes are too small for pieces from %d ranks",
                        query->geometry.slot_bytes, setup->holders);
    }
    hvd_rounds_set_up(schedule, widest);
    schedule->emit = emit_ring;
    return 0;
}
