/* SPDX-License-Identifier: Apache-2.0 */
/* Allreduce and reducescatter between three or more nodes: a reduce-scatter, then an
 * allgather, as in Rabenseifner's algorithm. But in both each node sends directly to all
 * others, instead of recursive halving and doubling. For each slice:
 *
 *   tick 0    the sum of the local ranks -> SEND: share j ---> RECV of node j
 *   tick 1    reduce my share over all nodes, in order -> OUT ---> OUT of all other nodes
 *   tick 2    await the shares of all other nodes in OUT
 *   tick 3    all local ranks GET the shares (schedule_slices.h)
 *
 * With two slots tick 1 also does the work of tick 2. */
#include "collectives/schedule/schedule_internode.h"
#include "collectives/schedule/schedule_steps.h"

/* Posts the receives of the other nodes' shares of the result. */
static void recv_results(struct hvd_schedule *schedule, const struct hvd_chunk *chunk,
                         const struct hvd_slice_part *slice)
{
    const struct hvd_layout *layout = schedule->query.layout;

    for (int distance = 1; distance < layout->nodes; distance++) {
        int node = hvd_internode_node(schedule, -distance);
        struct hvd_range share = hvd_internode_share(schedule, slice, node);

        hvd_emit_recv(schedule, hvd_slices_out(schedule, chunk, share.begin),
                      (size_t)share.count * schedule->query.element_bytes,
                      hvd_slice_owner(layout, node, slice->number));
    }
}

/* Sends my share of the result to all other nodes that want it. */
static void send_result(struct hvd_schedule *schedule, const struct hvd_chunk *chunk,
                        const struct hvd_slice_part *slice)
{
    const struct hvd_layout *layout = schedule->query.layout;
    struct hvd_range mine = hvd_internode_share(schedule, slice, schedule->node);

    for (int distance = 1; distance < layout->nodes; distance++) {
        int node = hvd_internode_node(schedule, distance);

        if (hvd_internode_wants(schedule, node)) {
            hvd_emit_send(schedule, hvd_slices_out(schedule, chunk, mine.begin),
                          (size_t)mine.count * schedule->query.element_bytes,
                          hvd_slice_owner(layout, node, slice->number));
        }
    }
}

static void post_results(struct hvd_schedule *schedule, const struct hvd_chunk *chunk)
{
    struct hvd_slice_part slice = {.turn = -1};

    while (hvd_internode_wants(schedule, schedule->node) &&
           hvd_slices_next(schedule, chunk, &slice)) {
        recv_results(schedule, chunk, &slice);
    }
    slice = (struct hvd_slice_part){.turn = -1};
    while (hvd_slices_next(schedule, chunk, &slice)) {
        send_result(schedule, chunk, &slice);
    }
    schedule->final_marks[chunk->slot] = schedule->posted;
}

static void advance_direct(struct hvd_schedule *schedule, int64_t tick)
{
    int64_t ending = tick - schedule->setup.slices.finals_lag;

    if (hvd_slices_has_chunk(schedule, tick)) {
        struct hvd_chunk chunk = hvd_slices_chunk(schedule, tick);

        hvd_slices_reduce_local(schedule, &chunk);
        hvd_internode_post_partials(schedule, &chunk, hvd_internode_recv_partials);
    }
    if (hvd_slices_has_chunk(schedule, tick - 1)) {
        struct hvd_chunk chunk = hvd_slices_chunk(schedule, tick - 1);

        hvd_internode_reduce(schedule, &chunk);
        post_results(schedule, &chunk);
    }
    if (hvd_slices_has_chunk(schedule, ending)) {
        int slot = hvd_slices_chunk(schedule, ending).slot;

        hvd_emit_wait_recvs(schedule, schedule->final_marks[slot].recvs);
    }
}

int hvd_direct_set_up(struct hvd_schedule *schedule, struct hvd_error *err)
{
    static const struct hvd_slice_ops ops = {hvd_internode_recv_bytes, advance_direct};
    struct hvd_slices_setup *setup = &schedule->setup.slices;
    int status;

    setup->is_cut = true;
    setup->messages = schedule->query.layout->nodes - 1;
    setup->finals_lag = schedule->query.geometry.slots > 2 ? 2 : 1;
    setup->get_lag = setup->finals_lag + 1;
    status = hvd_slices_set_up(schedule, &ops, err);
    schedule->step_capacity += hvd_internode_steps(schedule);
    return status;
}
