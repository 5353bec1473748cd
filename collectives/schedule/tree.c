/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcast. On each node one local rank, the owner, has a chunk first, in its IN: the
 * root, or the one that gets it from another node; the others copy it out from there. The
 * nodes form a binomial tree under the root's node.
 *
 * A chunk is there `lag` ticks after its slot was offered: none on the root's node, one
 * elsewhere, so that the next message is on its way while a chunk is passed on.
 *
 *   owner: wait until all have copied the chunk that was in the slot; PUT or RECV
 *            WAIT_RECV; SEND on; SIGNAL; GET, or COPY on the root
 *   others:  WAIT for the owner; GET; SIGNAL
 *
 * The root's output may be other memory than its input.
 *
 * The root's node sends every chunk log2(nodes) times: for large tensors on many nodes a
 * chain of nodes would be faster. It would replace parent_of and send_on. On one node it
 * goes other ways (cma_read.c, rolling.c). */
#include "collectives/schedule/schedule_state.h"
#include "collectives/schedule/schedule_parts.h"
#include "collectives/schedule/schedule_steps.h"
#include "gpu_binding/base/attr.h"

/* Places in the tree: 0 is the root's node. */
static int tree_place(const struct hvd_schedule *schedule)
{
    const struct hvd_layout *layout = schedule->query.layout;
    int root_node = layout->node[schedule->query.root];

    return (schedule->node - root_node + layout->nodes) % layout->nodes;
}

/* The rank that owns the data on the node with a place in the tree. */
static int owner_at(const struct hvd_schedule *schedule, int location)
{
    const struct hvd_layout *layout = schedule->query.layout;
    int root = schedule->query.root;
    int node = (layout->node[root] + location) % layout->nodes;

    return hvd_slice_owner(layout, node, layout->local_rank[root]);
}

/* To the children, the one with the largest subtree first. A child's place is its
 * parent's plus a power of two below the parent's lowest bit. */
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

/* The owner gets the chunk on its way into IN. */
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

/* The chunk leaves IN for the children and the output. */
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
                                    schedule->choice.chunk_bytes);
    setup->chunk_bytes =
        setup->chunks > 0 ? hvd_divide_up(query->bytes, setup->chunks) : 0;
    schedule->facts.ticks =
        setup->chunks > 0 ? setup->chunks + (location > 0 ? 1 : 0) : 0;
    schedule->facts.signals = (uint64_t)setup->chunks;
    schedule->step_capacity = 16 + 32; /* a child for each bit of a place */
    schedule->emit = emit_tree;
    return 0;
}
