/* SPDX-License-Identifier: Apache-2.0 */
/* Linear (flat) allreduce and reducescatter between nodes: each node sends the whole sum
 * of its local ranks to all other nodes. For each slice:
 *
 *   tick 0   the sum of the local ranks -> SEND ---> RECV of all other nodes
 *   tick 1   reduce the slices of all nodes, in order -> OUT
 *   tick 2   all local ranks GET the slice (schedule_slices.h)
 *
 * With two nodes, each reduces the other's data as it arrives, straight to OUT; RECV is
 * not used.
 *
 * Local ranks could also read each other's inputs and results in place, as in cma_reduce,
 * but that is not faster. Measured on two nodes of two ranks: 1 and 4 MiB took the same
 * time; 64 MiB took 64 to 73 ms instead of 46 to 50, because the kernel's copy of the
 * result does not bypass the caches, and 54 ms if only the inputs were read in place. */
#include "collectives/schedule/schedule_internode.h"
#include "collectives/schedule/schedule_steps.h"

enum {
    GET_LAG = 2,
};

/* Receives a slice from the other node, where there are two, and adds it to this node's
 * slice. */
static void recv_reduce(struct hvd_schedule *schedule, const struct hvd_chunk *chunk,
                        const struct hvd_slice_part *slice)
{
    int64_t first = slice->elements.begin;
    const struct hvd_location to = hvd_slices_out(schedule, chunk, first);
    const struct hvd_arrival arrival = {
        .own = hvd_slices_send(schedule, chunk, slice, first),
        .to = &to,
        .count = (size_t)slice->elements.count,
        .is_partial = true,
    };

    hvd_emit_recv_reduce(schedule, &arrival,
                         hvd_slice_owner(schedule->query.layout,
                                         hvd_internode_node(schedule, 1), slice->number));
}

static void advance_linear(struct hvd_schedule *schedule, int64_t tick)
{
    bool is_pairwise = schedule->setup.slices.is_pairwise;

    if (hvd_slices_has_chunk(schedule, tick)) {
        struct hvd_chunk chunk = hvd_slices_chunk(schedule, tick);

        hvd_slices_reduce_local(schedule, &chunk);
        hvd_internode_post_partials(
            schedule, &chunk, is_pairwise ? recv_reduce : hvd_internode_recv_partials);
    }
    if (hvd_slices_has_chunk(schedule, tick - 1)) {
        struct hvd_chunk chunk = hvd_slices_chunk(schedule, tick - 1);

        if (is_pairwise) {
            hvd_emit_wait_recvs(schedule, schedule->marks[chunk.slot].recvs);
        } else {
            hvd_internode_reduce(schedule, &chunk);
        }
    }
}

int hvd_linear_set_up(struct hvd_schedule *schedule, struct hvd_error *err)
{
    static const struct hvd_slice_ops ops = {hvd_internode_recv_bytes, advance_linear};
    struct hvd_slices_setup *setup = &schedule->setup.slices;
    int status;

    setup->get_lag = GET_LAG;
    setup->is_pairwise =
        schedule->query.layout->nodes == 2 && GET_LAG < schedule->query.geometry.slots;
    status = hvd_slices_set_up(schedule, &ops, err);
    schedule->step_capacity += hvd_internode_steps(schedule);
    return status;
}
