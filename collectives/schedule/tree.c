/* SPDX-License-Identifier: Apache-2.0 */
/* Binomial-tree broadcast between nodes, pipelined in chunks. On each node one local
 * rank, the owner, gets a chunk first, into its IN: the root, or the rank that receives
 * from another node. The others copy it out from there. The root of the tree is the
 * root's node.
 *
 * The owner fills a slot and, `lag` ticks later, passes the chunk on. The lag is 0 on the
 * root's node and 1 elsewhere, so that the next message is in flight while a chunk is
 * passed on.
 *
 *   owner: WAIT until all have copied the old chunk in the slot; PUT or RECV
 *            WAIT_RECV; SEND to the children; SIGNAL; GET, or COPY on the root
 *   others:  WAIT for the owner; GET; SIGNAL
 *
 * The root's output may differ from its input.
 *
 * The root's node sends every chunk log2(nodes) times. For large tensors on many nodes a
 * chain of nodes would be faster. On one node cma_read.c, cma_write.c or rolling.c are
 * used instead. */
#include "collectives/schedule/schedule_state.h"
#include "collectives/schedule/schedule_parts.h"
#include "collectives/schedule/schedule_steps.h"
#include "gpu_binding/base/attr.h"

/* Returns my node's position in the tree; the root's node is 0. */
static int tree_place(const struct hvd_schedule *schedule)
{
    const struct hvd_layout *layout = schedule->query.layout;
    int root_node = layout->node[schedule->query.root];

    return (schedule->node - root_node + layout->nodes) % layout->nodes;
}

/* Returns the owner on the node at a position in the tree. */
static int owner_at(const struct hvd_schedule *schedule, int location)
{
    const struct hvd_layout *layout = schedule->query.layout;
    int root = schedule->query.root;
    int node = (layout->node[root] + location) % layout->nodes;

    return hvd_slice_owner(layout, node, layout->local_rank[root]);
}

/* Sends a chunk to the children, the one with the largest subtree first. The position of
 * a child is its parent's plus a power of two below the parent's lowest set bit. */
static void send_on(struct hvd_schedule *schedule, struct hvd_location from, size_t bytes)
{
    int nodes = schedule->query.layout->nodes;
    int location = tree_place(schedule);
    int step = 1;

    while (step < nodes && (location & step) == 0) {
        step *= 2;
    }
    for (step /= 2; step > 0; step /= 2) {
        if (location + step < nodes) {
            hvd_emit_send(schedule, from, bytes, owner_at(schedule, location + step));
        }
    }
}

static struct hvd_range chunk_of(const struct hvd_schedule *schedule, int64_t chunk)
{
    int64_t most = schedule->setup.broadcast.chunk_bytes;
    struct hvd_range all = {0, schedule->query.bytes};
    struct hvd_range slice = {chunk * most, most};

    return hvd_range_common(all, slice);
}

static struct hvd_location location_of(const struct hvd_schedule *schedule, int64_t chunk)
{
    int slot = (int)(chunk % schedule->query.geometry.slots);

    return hvd_location_of(HVD_LOCATION_IN, schedule->setup.broadcast.owner, slot, 0);
}

/* Makes the owner fill IN: with a PUT on the root's node, else with a receive from the
 * parent. */
static void offer_chunk(struct hvd_schedule *schedule, int64_t chunk)
{
    int parent = schedule->setup.broadcast.parent;
    int slots = schedule->query.geometry.slots;
    struct hvd_range range = chunk_of(schedule, chunk);
    struct hvd_location in = location_of(schedule, chunk);

    if (chunk >= slots) {
        hvd_emit_wait_all(schedule, (uint64_t)(chunk - slots + 1));
        hvd_emit_wait_sends(schedule, schedule->marks[in.slot].sends);
    }
    if (parent < 0) {
        hvd_emit_put(schedule, range.begin, (size_t)range.count, in);
    } else {
        hvd_emit_recv(schedule, in, (size_t)range.count, parent);
    }
}

/* Passes a chunk from IN to the children and to the outputs of all local ranks. */
static void deliver_chunk(struct hvd_schedule *schedule, int64_t chunk)
{
    bool is_owner = schedule->setup.broadcast.owner == schedule->local_rank;
    struct hvd_range range = chunk_of(schedule, chunk);
    struct hvd_location in = location_of(schedule, chunk);

    if (!is_owner) {
        hvd_emit_wait(schedule, in.local_rank, (uint64_t)chunk + 1);
        hvd_emit_get(schedule, in, range.begin, (size_t)range.count);
        hvd_emit_signal(schedule);
        return;
    }
    if (schedule->setup.broadcast.parent >= 0) {
        hvd_emit_wait_recvs(schedule, (uint64_t)chunk + 1);
    }
    send_on(schedule, in, (size_t)range.count);
    schedule->marks[in.slot] = schedule->posted;
    hvd_emit_signal(schedule);
    if (schedule->query.rank == schedule->query.root) {
        hvd_emit_copy(schedule, range.begin, range.begin, (size_t)range.count);
    } else {
        hvd_emit_get(schedule, in, range.begin, (size_t)range.count);
    }
}

static void emit_tree(struct hvd_schedule *schedule, int64_t tick)
{
    const struct hvd_broadcast_setup *setup = &schedule->setup.broadcast;
    int64_t leaving = tick - (schedule->facts.ticks - setup->chunks);

    if (tick == 0) {
        hvd_emit_wait_all(schedule, 0);
    }
    if (setup->owner == schedule->local_rank && tick < setup->chunks) {
        offer_chunk(schedule, tick);
    }
    if (leaving >= 0) {
        deliver_chunk(schedule, leaving);
    }
    if (tick == schedule->facts.ticks - 1) {
        hvd_emit_wait_sends(schedule, schedule->posted.sends);
    }
}

int hvd_tree_set_up(struct hvd_schedule *schedule, struct hvd_error *err HVD_UNUSED)
{
    const struct hvd_schedule_query *query = &schedule->query;
    struct hvd_broadcast_setup *setup = &schedule->setup.broadcast;
    int location = tree_place(schedule);

    setup->owner = query->layout->local_rank[owner_at(schedule, location)];
    setup->parent = location > 0 ? owner_at(schedule, location & (location - 1)) : -1;
    setup->chunks = hvd_chunk_count(query->bytes, 1, (int64_t)query->geometry.slot_bytes,
                                    HVD_LEAST_CHUNK_BYTES, schedule->choice.chunk_bytes);
    setup->chunk_bytes =
        setup->chunks > 0 ? hvd_divide_up(query->bytes, setup->chunks) : 0;
    schedule->facts.ticks =
        setup->chunks > 0 ? setup->chunks + (location > 0 ? 1 : 0) : 0;
    schedule->facts.signals = (uint64_t)setup->chunks;
    schedule->step_capacity = 16 + 32; /* one child for each bit of a position */
    schedule->emit = emit_tree;
    return 0;
}
