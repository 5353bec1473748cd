/* SPDX-License-Identifier: Apache-2.0 */
/* Adding up what another node sends, while it comes, out of the network's own memory. */
#include "collectives/execute/run_take.h"

#include <string.h>

#include "collectives/transport/net/net_flow.h"

_Static_assert((size_t)HVD_SCHEDULE_MESSAGE_BYTES == HVD_NET_FRAGMENT_BYTES,
               "schedules know how long the network's messages are");

enum {
    /* What is not aligned for its elements goes through this much of the L1 cache. */
    BLOCK_BYTES = 4096,
};

/* Elements of a message that came together, and mine of the same places. */
struct piece {
    const char *data;
    const char *own;
    size_t count;
    bool is_streamed; /* their sum goes past the caches */
};

static void add_aligned(const struct hvd_run *run, const struct hvd_reduction *reduction,
                        const struct piece *piece, char *to)
{
    bool is_first = run->team->node == 0;
    const void *sources[2] = {is_first ? piece->own : piece->data,
                              is_first ? piece->data : piece->own};

    if (piece->is_streamed) {
        hvd_reduce_stream(reduction, sources, 2, piece->count, to);
    } else {
        hvd_reduce(reduction, sources, 2, piece->count, to);
    }
}

static void add_up(const struct hvd_run *run, const struct hvd_reduction *reduction,
                   struct piece piece, char *to)
{
    size_t out_bytes = hvd_dtype_bytes(reduction->dtype);
    size_t bytes =
        reduction->from_partial ? hvd_partial_bytes(reduction->dtype) : out_bytes;
    _Alignas(64) char block[BLOCK_BYTES];
    size_t most = sizeof(block) / bytes;

    if ((uintptr_t)piece.data % bytes == 0) {
        add_aligned(run, reduction, &piece, to);
        return;
    }
    for (size_t left = piece.count; left > 0; left -= most < left ? most : left) {
        size_t count = left < most ? left : most;
        size_t first = piece.count - left;
        struct piece part = {block, piece.own + first * bytes, count, piece.is_streamed};

        memcpy(block, piece.data + first * bytes, count * bytes);
        add_aligned(run, reduction, &part, to + first * out_bytes);
    }
}

/* To bytes of the output from begin on, which may be several tensors. */
static void add_to_output(struct hvd_run *run, const struct hvd_reduction *reduction,
                          struct piece piece, int64_t begin)
{
    size_t out_bytes = hvd_dtype_bytes(reduction->dtype);
    size_t bytes =
        reduction->from_partial ? hvd_partial_bytes(reduction->dtype) : out_bytes;

    while (piece.count > 0) {
        size_t room = piece.count * out_bytes;
        char *to = hvd_segments_at(&run->output, begin, &room);
        struct piece part = {piece.data, piece.own, room / out_bytes,
                             hvd_segments_streams(&run->output, room)};

        if (to != NULL) {
            add_up(run, reduction, part, to);
        }
        piece.data += part.count * bytes;
        piece.own += part.count * bytes;
        piece.count -= part.count;
        begin += (int64_t)room;
    }
}

static void take(struct hvd_net_op *op, const void *data, size_t bytes)
{
    const struct hvd_op_sum *sum = hvd_op_queue_sum(op);
    struct hvd_reduction reduction = sum->run->reduction;
    size_t out_bytes = hvd_dtype_bytes(reduction.dtype);
    size_t in_bytes = sum->is_partial ? hvd_partial_bytes(reduction.dtype) : out_bytes;
    struct piece piece = {
        .data = data, .own = sum->own + op->done, .count = bytes / in_bytes};
    size_t first = op->done / in_bytes;

    reduction.from_partial = sum->is_partial;
    if (sum->to != NULL) {
        add_up(sum->run, &reduction, piece, sum->to + first * out_bytes);
    } else {
        add_to_output(sum->run, &reduction, piece,
                      sum->begin + (int64_t)(first * out_bytes));
    }
}

int hvd_run_recv_reduce(struct hvd_run *run, const struct hvd_step *step)
{
    const struct hvd_op_sum sum = {
        .run = run,
        .own = hvd_team_place(run->team, &step->own),
        .to = step->to_output ? NULL : hvd_team_place(run->team, &step->to),
        .begin = step->begin,
        .is_partial = step->is_partial,
    };
    struct hvd_net_op *op = hvd_op_queue_next(&run->recvs);

    if (op == NULL) {
        return HVD_ERR_NOMEM;
    }
    *hvd_op_queue_sum(op) = sum;
    hvd_team_recv_by(run->team, step->peer, take, step->bytes, op);
    return 0;
}
