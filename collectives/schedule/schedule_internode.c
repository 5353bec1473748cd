/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between nodes for linear and direct: the owners of a slice all talk to each
 * other. */
#include "collectives/schedule/schedule_internode.h"

#include "collectives/schedule/schedule_steps.h"

struct hvd_range hvd_internode_share(const struct hvd_schedule *schedule,
                                     const struct hvd_slice_part *slice, int node)
{
    return schedule->setup.slices.is_cut
               ? hvd_part_of(slice->elements, schedule->query.layout->nodes, node)
               : slice->elements;
}

bool hvd_internode_wants(const struct hvd_schedule *schedule, int node)
{
    const struct hvd_schedule_query *query = &schedule->query;

    return !query->is_for_root || query->layout->node[query->root] == node;
}

/* Whether a node reduces partials. */
static bool adds_up(const struct hvd_schedule *schedule, int node)
{
    return schedule->setup.slices.is_cut || hvd_internode_wants(schedule, node);
}

/* Returns the distance in RECV between the shares of two nodes. */
static size_t recv_stride(const struct hvd_schedule *schedule, int64_t slice_count)
{
    int nodes = schedule->query.layout->nodes;
    int64_t share =
        schedule->setup.slices.is_cut ? hvd_part_most(slice_count, nodes) : slice_count;

    return (size_t)share * schedule->query.partial_bytes;
}

size_t hvd_internode_recv_bytes(const struct hvd_schedule *schedule, int64_t slice_count)
{
    return recv_stride(schedule, slice_count) * (size_t)schedule->query.layout->nodes;
}

int hvd_internode_steps(const struct hvd_schedule *schedule)
{
    return 8 + schedule->setup.slices.owned * (3 + 4 * schedule->query.layout->nodes);
}

static struct hvd_location in_recv(const struct hvd_schedule *schedule,
                                   const struct hvd_chunk *chunk,
                                   const struct hvd_slice_part *slice, int node)
{
    size_t start = (size_t)slice->turn * schedule->setup.slices.recv_slice_bytes;
    size_t stride = recv_stride(schedule, slice->elements.count);

    return hvd_location_of(HVD_LOCATION_RECV, schedule->local_rank, chunk->slot,
                           start + (size_t)node * stride);
}

int hvd_internode_node(const struct hvd_schedule *schedule, int distance)
{
    int nodes = schedule->query.layout->nodes;

    return (schedule->node + distance + nodes) % nodes;
}

void hvd_internode_recv_partials(struct hvd_schedule *schedule,
                                 const struct hvd_chunk *chunk,
                                 const struct hvd_slice_part *slice)
{
    const struct hvd_layout *layout = schedule->query.layout;
    struct hvd_range mine = hvd_internode_share(schedule, slice, schedule->node);

    for (int distance = 1; distance < layout->nodes; distance++) {
        int node = hvd_internode_node(schedule, -distance);

        hvd_emit_recv(schedule, in_recv(schedule, chunk, slice, node),
                      (size_t)mine.count * schedule->query.partial_bytes,
                      hvd_slice_owner(layout, node, slice->number));
    }
}

static void post_sends(struct hvd_schedule *schedule, const struct hvd_chunk *chunk,
                       const struct hvd_slice_part *slice)
{
    const struct hvd_layout *layout = schedule->query.layout;

    for (int distance = 1; distance < layout->nodes; distance++) {
        int node = hvd_internode_node(schedule, distance);
        struct hvd_range share = hvd_internode_share(schedule, slice, node);

        if (adds_up(schedule, node)) {
            hvd_emit_send(schedule, hvd_slices_send(schedule, chunk, slice, share.begin),
                          (size_t)share.count * schedule->query.partial_bytes,
                          hvd_slice_owner(layout, node, slice->number));
        }
    }
}

void hvd_internode_post_partials(struct hvd_schedule *schedule,
                                 const struct hvd_chunk *chunk, hvd_internode_recv *recv)
{
    struct hvd_slice_part slice = {.turn = -1};

    while (adds_up(schedule, schedule->node) &&
           hvd_slices_next(schedule, chunk, &slice)) {
        recv(schedule, chunk, &slice);
    }
    slice = (struct hvd_slice_part){.turn = -1};
    while (hvd_slices_next(schedule, chunk, &slice)) {
        post_sends(schedule, chunk, &slice);
    }
    schedule->marks[chunk->slot] = schedule->posted;
}

void hvd_internode_reduce(struct hvd_schedule *schedule, const struct hvd_chunk *chunk)
{
    struct hvd_slice_part slice = {.turn = -1};

    hvd_emit_wait_recvs(schedule, schedule->marks[chunk->slot].recvs);
    hvd_emit_wait_sends(schedule, schedule->final_marks[chunk->slot].sends);
    while (adds_up(schedule, schedule->node) &&
           hvd_slices_next(schedule, chunk, &slice)) {
        struct hvd_range mine = hvd_internode_share(schedule, &slice, schedule->node);
        struct hvd_node_sources sources = {
            .from = in_recv(schedule, chunk, &slice, 0),
            .stride = recv_stride(schedule, slice.elements.count),
            .count = schedule->query.layout->nodes,
            .own_number = schedule->node,
            .own = hvd_slices_send(schedule, chunk, &slice, mine.begin),
        };

        hvd_emit_reduce_nodes(schedule, &sources, (size_t)mine.count,
                              hvd_slices_out(schedule, chunk, mine.begin));
    }
}
