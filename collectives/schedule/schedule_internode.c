/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the carriers of a lane, each of which talks to all others. */
#include "collectives/schedule/schedule_internode.h"

#include "collectives/schedule/schedule_steps.h"

struct hvd_range hvd_internode_share(const struct hvd_schedule *schedule,
                                     const struct hvd_lane_part *lane, int node)
{
    return schedule->setup.lanes.is_cut
               ? hvd_part_of(lane->elements, schedule->query.layout->nodes, node)
               : lane->elements;
}

bool hvd_internode_wants(const struct hvd_schedule *schedule, int node)
{
    const struct hvd_schedule_query *query = &schedule->query;

    return !query->is_for_root || query->layout->node[query->root] == node;
}

/* Whether a node adds up partials. */
static bool adds_up(const struct hvd_schedule *schedule, int node)
{
    return schedule->setup.lanes.is_cut || hvd_internode_wants(schedule, node);
}

/* Between two nodes' shares in RECV. */
static size_t recv_stride(const struct hvd_schedule *schedule, int64_t lane_count)
{
    int nodes = schedule->query.layout->nodes;
    int64_t share =
        schedule->setup.lanes.is_cut ? hvd_part_most(lane_count, nodes) : lane_count;

    return (size_t)share * schedule->query.partial_bytes;
}

size_t hvd_internode_recv_bytes(const struct hvd_schedule *schedule, int64_t lane_count)
{
    return recv_stride(schedule, lane_count) * (size_t)schedule->query.layout->nodes;
}

int hvd_internode_steps(const struct hvd_schedule *schedule)
{
    return 8 + schedule->setup.lanes.carried * (3 + 4 * schedule->query.layout->nodes);
}

static struct hvd_place in_recv(const struct hvd_schedule *schedule,
                                const struct hvd_chunk *chunk,
                                const struct hvd_lane_part *lane, int node)
{
    size_t start = (size_t)lane->turn * schedule->setup.lanes.recv_lane_bytes;
    size_t stride = recv_stride(schedule, lane->elements.count);

    return hvd_place_of(HVD_PLACE_RECV, schedule->local_rank, chunk->slot,
                        start + (size_t)node * stride);
}

int hvd_internode_node(const struct hvd_schedule *schedule, int distance)
{
    int nodes = schedule->query.layout->nodes;

    return (schedule->node + distance + nodes) % nodes;
}

void hvd_internode_recv_partials(struct hvd_schedule *schedule,
                                 const struct hvd_chunk *chunk,
                                 const struct hvd_lane_part *lane)
{
    const struct hvd_layout *layout = schedule->query.layout;
    struct hvd_range mine = hvd_internode_share(schedule, lane, schedule->node);

    for (int distance = 1; distance < layout->nodes; distance++) {
        int node = hvd_internode_node(schedule, -distance);

        hvd_emit_recv(schedule, in_recv(schedule, chunk, lane, node),
                      (size_t)mine.count * schedule->query.partial_bytes,
                      hvd_lane_carrier(layout, node, lane->number));
    }
}

static void post_sends(struct hvd_schedule *schedule, const struct hvd_chunk *chunk,
                       const struct hvd_lane_part *lane)
{
    const struct hvd_layout *layout = schedule->query.layout;

    for (int distance = 1; distance < layout->nodes; distance++) {
        int node = hvd_internode_node(schedule, distance);
        struct hvd_range share = hvd_internode_share(schedule, lane, node);

        if (adds_up(schedule, node)) {
            hvd_emit_send(schedule, hvd_lanes_send(schedule, chunk, lane, share.begin),
                          (size_t)share.count * schedule->query.partial_bytes,
                          hvd_lane_carrier(layout, node, lane->number));
        }
    }
}

void hvd_internode_post_partials(struct hvd_schedule *schedule,
                                 const struct hvd_chunk *chunk, hvd_internode_recv *recv)
{
    struct hvd_lane_part lane = {.turn = -1};

    while (adds_up(schedule, schedule->node) && hvd_lanes_next(schedule, chunk, &lane)) {
        recv(schedule, chunk, &lane);
    }
    lane = (struct hvd_lane_part){.turn = -1};
    while (hvd_lanes_next(schedule, chunk, &lane)) {
        post_sends(schedule, chunk, &lane);
    }
    schedule->marks[chunk->slot] = schedule->posted;
}

void hvd_internode_reduce(struct hvd_schedule *schedule, const struct hvd_chunk *chunk)
{
    struct hvd_lane_part lane = {.turn = -1};

    hvd_emit_wait_recvs(schedule, schedule->marks[chunk->slot].recvs);
    hvd_emit_wait_sends(schedule, schedule->final_marks[chunk->slot].sends);
    while (adds_up(schedule, schedule->node) && hvd_lanes_next(schedule, chunk, &lane)) {
        struct hvd_range mine = hvd_internode_share(schedule, &lane, schedule->node);
        struct hvd_node_sources sources = {
            .from = in_recv(schedule, chunk, &lane, 0),
            .stride = recv_stride(schedule, lane.elements.count),
            .count = schedule->query.layout->nodes,
            .own_number = schedule->node,
            .own = hvd_lanes_send(schedule, chunk, &lane, mine.begin),
        };

        hvd_emit_reduce_nodes(schedule, &sources, (size_t)mine.count,
                              hvd_lanes_out(schedule, chunk, mine.begin));
    }
}
