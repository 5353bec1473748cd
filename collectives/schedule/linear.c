/* SPDX-License-Identifier: Apache-2.0 */
/* Allreduce between nodes: what the carriers of a lane do with each other.
 *
 *   exchange                        direct
 *   SEND: my node's lane ------->   SEND: share j of my node's lane --> node j
 *   RECV: the lane of each node     RECV: my share of each node
 *   add up in order -> OUT          add up in order -> my share of OUT
 *                                   OUT: my share --> all;  all others' shares --> OUT
 *
 * Two nodes exchange without RECV: what comes is added up while it comes, straight to OUT.
 *
 * To read the inputs, and the results, where they are, as on one node, was tried on two nodes of two
 * ranks: 1 and 4 MiB took as long, and 64 MiB 64 to 73 ms instead of 46 to 50, since the kernel's
 * copy of the result does not go past the caches. Inputs alone: 54 ms.
 *
 * A carrier posts all receives of a phase before its sends, and waits only for what every
 * rank has posted by the same point of its own schedule: no deadlock, even when no send ends
 * before its receive is posted. Two carriers exchange their lanes in ascending order.
 *
 * A carrier talks to every other node: right for some nodes. More are laid out as a grid
 * (multilevel.c). */
#include "collectives/schedule/schedule_internode.h"
#include "collectives/schedule/schedule_steps.h"

/* A lane of a chunk that this rank carries. */
struct lane {
    int number;
    int turn; /* how many of my lanes come before it */
    struct hvd_range elements;
};

/* Starts with turn -1; false when there is no further lane. */
static bool next_lane(const struct hvd_schedule *schedule, const struct hvd_chunk *chunk,
                      struct lane *lane)
{
    int lanes = schedule->setup.lanes.lanes;

    lane->turn++;
    lane->number = schedule->local_rank + lane->turn * schedule->local_size;
    if (lane->number >= lanes) {
        return false;
    }
    lane->elements = hvd_part_of(chunk->elements, lanes, lane->number);
    return true;
}

/* The elements of a lane that a node adds up. */
static struct hvd_range share_of(const struct hvd_schedule *schedule,
                                 const struct lane *lane, int node)
{
    bool is_direct = schedule->setup.lanes.is_direct;
    int nodes = schedule->query.layout->nodes;

    return is_direct ? hvd_part_of(lane->elements, nodes, node) : lane->elements;
}

/* Whether a rank of the node gets some of the result. */
static bool wants(const struct hvd_schedule *schedule, int node)
{
    const struct hvd_schedule_query *query = &schedule->query;

    return !query->is_for_root || query->layout->node[query->root] == node;
}

/* Whether a node adds up partials. */
static bool adds_up(const struct hvd_schedule *schedule, int node)
{
    return schedule->setup.lanes.is_direct || wants(schedule, node);
}

size_t hvd_exchange_send_bytes(const struct hvd_schedule *schedule, int64_t lane_count)
{
    return (size_t)lane_count * schedule->query.partial_bytes;
}

/* Between two nodes' shares in RECV. */
static size_t recv_stride(const struct hvd_schedule *schedule, int64_t lane_count)
{
    bool is_direct = schedule->setup.lanes.is_direct;
    int nodes = schedule->query.layout->nodes;
    int64_t share = is_direct ? hvd_part_most(lane_count, nodes) : lane_count;

    return (size_t)share * schedule->query.partial_bytes;
}

size_t hvd_exchange_recv_bytes(const struct hvd_schedule *schedule, int64_t lane_count)
{
    if (schedule->setup.lanes.is_grid) {
        return hvd_grid_allreduce_recv_bytes(schedule, lane_count);
    }
    return recv_stride(schedule, lane_count) * (size_t)schedule->query.layout->nodes;
}

static struct hvd_place in_send(const struct hvd_schedule *schedule,
                                const struct hvd_chunk *chunk, const struct lane *lane,
                                int64_t first)
{
    size_t index = (size_t)(first - lane->elements.begin);
    size_t start = (size_t)lane->turn * schedule->setup.lanes.send_lane_bytes;

    return hvd_place_of(HVD_PLACE_SEND, schedule->local_rank, chunk->slot,
                        start + index * schedule->query.partial_bytes);
}

static struct hvd_place in_recv(const struct hvd_schedule *schedule,
                                const struct hvd_chunk *chunk, const struct lane *lane,
                                int node)
{
    size_t start = (size_t)lane->turn * schedule->setup.lanes.recv_lane_bytes;
    size_t stride = recv_stride(schedule, lane->elements.count);

    return hvd_place_of(HVD_PLACE_RECV, schedule->local_rank, chunk->slot,
                        start + (size_t)node * stride);
}

static struct hvd_place in_out(const struct hvd_schedule *schedule,
                               const struct hvd_chunk *chunk, int64_t first)
{
    struct hvd_place out = {.kind = HVD_PLACE_OUT, .local_rank = schedule->local_rank};

    return hvd_lanes_place(schedule, chunk, out, first);
}

void hvd_exchange_local_partials(struct hvd_schedule *schedule,
                                 const struct hvd_chunk *chunk)
{
    struct hvd_place in = {.kind = HVD_PLACE_IN};
    struct lane lane = {.turn = -1};

    hvd_emit_wait_sends(schedule, schedule->marks[chunk->slot].sends);
    while (next_lane(schedule, chunk, &lane)) {
        int64_t first = lane.elements.begin;

        hvd_emit_reduce_local(schedule, hvd_lanes_place(schedule, chunk, in, first),
                              first * (int64_t)schedule->query.element_bytes,
                              (size_t)lane.elements.count,
                              in_send(schedule, chunk, &lane, first));
    }
}

/* The node at a distance around the ring of nodes; each sends to the next ones first, so that
 * not all start with the same. */
static int node_at(const struct hvd_schedule *schedule, int distance)
{
    int nodes = schedule->query.layout->nodes;

    return (schedule->node + distance + nodes) % nodes;
}

static void receive_partials(struct hvd_schedule *schedule, const struct hvd_chunk *chunk,
                             const struct lane *lane)
{
    const struct hvd_layout *layout = schedule->query.layout;
    struct hvd_range mine = share_of(schedule, lane, schedule->node);

    for (int distance = 1; distance < layout->nodes; distance++) {
        int node = node_at(schedule, -distance);

        hvd_emit_recv(schedule, in_recv(schedule, chunk, lane, node),
                      (size_t)mine.count * schedule->query.partial_bytes,
                      hvd_lane_carrier(layout, node, lane->number));
    }
}

/* From the one other node. */
static void add_partials(struct hvd_schedule *schedule, const struct hvd_chunk *chunk,
                         const struct lane *lane)
{
    int64_t first = lane->elements.begin;
    const struct hvd_place to = in_out(schedule, chunk, first);
    const struct hvd_arrival arrival = {
        .own = in_send(schedule, chunk, lane, first),
        .to = &to,
        .count = (size_t)lane->elements.count,
        .is_partial = true,
    };

    hvd_emit_recv_reduce(
        schedule, &arrival,
        hvd_lane_carrier(schedule->query.layout, node_at(schedule, 1), lane->number));
}

void hvd_exchange_post_partials(struct hvd_schedule *schedule,
                                const struct hvd_chunk *chunk)
{
    const struct hvd_layout *layout = schedule->query.layout;
    size_t bytes = schedule->query.partial_bytes;
    struct lane lane = {.turn = -1};

    while (adds_up(schedule, schedule->node) && next_lane(schedule, chunk, &lane)) {
        if (schedule->setup.lanes.is_pairwise) {
            add_partials(schedule, chunk, &lane);
        } else {
            receive_partials(schedule, chunk, &lane);
        }
    }
    lane = (struct lane){.turn = -1};
    while (next_lane(schedule, chunk, &lane)) {
        for (int distance = 1; distance < layout->nodes; distance++) {
            int node = node_at(schedule, distance);
            struct hvd_range share = share_of(schedule, &lane, node);

            if (adds_up(schedule, node)) {
                hvd_emit_send(schedule, in_send(schedule, chunk, &lane, share.begin),
                              (size_t)share.count * bytes,
                              hvd_lane_carrier(layout, node, lane.number));
            }
        }
    }
    schedule->marks[chunk->slot] = schedule->posted;
}

void hvd_exchange_reduce_nodes(struct hvd_schedule *schedule,
                               const struct hvd_chunk *chunk)
{
    struct lane lane = {.turn = -1};

    hvd_emit_wait_recvs(schedule, schedule->marks[chunk->slot].recvs);
    if (schedule->setup.lanes.is_pairwise) {
        return;
    }
    hvd_emit_wait_sends(schedule, schedule->final_marks[chunk->slot].sends);
    while (adds_up(schedule, schedule->node) && next_lane(schedule, chunk, &lane)) {
        struct hvd_range mine = share_of(schedule, &lane, schedule->node);

        struct hvd_sources sources = {
            .from = in_recv(schedule, chunk, &lane, 0),
            .stride = recv_stride(schedule, lane.elements.count),
            .count = schedule->query.layout->nodes,
            .own_number = schedule->node,
            .own = in_send(schedule, chunk, &lane, mine.begin),
        };

        hvd_emit_reduce_nodes(schedule, &sources, (size_t)mine.count,
                              in_out(schedule, chunk, mine.begin));
    }
}

void hvd_exchange_post_finals(struct hvd_schedule *schedule,
                              const struct hvd_chunk *chunk)
{
    const struct hvd_layout *layout = schedule->query.layout;
    size_t bytes = schedule->query.element_bytes;
    struct lane lane = {.turn = -1};

    while (wants(schedule, schedule->node) && next_lane(schedule, chunk, &lane)) {
        for (int distance = 1; distance < layout->nodes; distance++) {
            int node = node_at(schedule, -distance);
            struct hvd_range share = share_of(schedule, &lane, node);

            hvd_emit_recv(schedule, in_out(schedule, chunk, share.begin),
                          (size_t)share.count * bytes,
                          hvd_lane_carrier(layout, node, lane.number));
        }
    }
    lane = (struct lane){.turn = -1};
    while (next_lane(schedule, chunk, &lane)) {
        struct hvd_range mine = share_of(schedule, &lane, schedule->node);

        for (int distance = 1; distance < layout->nodes; distance++) {
            int node = node_at(schedule, distance);

            if (wants(schedule, node)) {
                hvd_emit_send(schedule, in_out(schedule, chunk, mine.begin),
                              (size_t)mine.count * bytes,
                              hvd_lane_carrier(layout, node, lane.number));
            }
        }
    }
    schedule->final_marks[chunk->slot] = schedule->posted;
}

void hvd_exchange_await_finals(struct hvd_schedule *schedule,
                               const struct hvd_chunk *chunk)
{
    hvd_emit_wait_recvs(schedule, schedule->final_marks[chunk->slot].recvs);
}

int hvd_exchange_steps_between(const struct hvd_lanes_setup *setup)
{
    int levels = setup->grid.levels;

    return 8 * levels +
           setup->carried * (2 + levels + 4 * (hvd_grid_messages(&setup->grid) + levels));
}
