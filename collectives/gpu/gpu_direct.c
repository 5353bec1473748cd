/* SPDX-License-Identifier: Apache-2.0 */
/* The allreduce of one chunk in GPU memory among one rank of each node. */
#include "collectives/gpu/gpu_direct.h"

#include <stdlib.h>

#include "collectives/gpu/gpu_job.h"
#include "collectives/run/team.h"
#include "gpu_binding/base/error.h"

/* Alignment of a share: a multiple of the unit that kernels read and write, and of every
 * element size. */
static const int64_t alignment = 256;

/* The channel of a chunk is the team's channel, with the chunk's number plus 1 in the
 * bits from here on. */
static const int number_shift = 28;

enum phase {
    IDLE,
    READY, /* waits until the data is complete */
    SCATTER, /* waits until all copies of this rank's share have arrived */
    ADD, /* waits until the device has summed the copies and this rank's data is sent */
    GATHER, /* waits until the sums are exchanged */
};

struct hvd_gpu_direct_allreduce {
    struct hvd_gpu_runtime *gpu;
    const struct hvd_team *team;
    uint32_t channel;
    enum phase phase;
    struct hvd_gpu_direct_chunk chunk;
    int64_t share_bytes; /* the last shares may be smaller */
    struct hvd_gpu_job add;
    struct hvd_net_op *sends; /* [size] of the current phase */
    struct hvd_net_op *recvs; /* [size] */
};

static int64_t share_bytes(const struct hvd_team *team, int64_t bytes)
{
    int64_t size = team->layout->size;
    int64_t share = (bytes + size - 1) / size;

    return (share + alignment - 1) / alignment * alignment;
}

int64_t hvd_gpu_direct_scratch_bytes(const struct hvd_team *team, int64_t bytes)
{
    return share_bytes(team, bytes) * (team->layout->size - 1);
}

int hvd_gpu_direct_create(struct hvd_gpu_runtime *gpu, const struct hvd_team *team,
                          int number, struct hvd_gpu_direct_allreduce **out,
                          struct hvd_error *err)
{
    struct hvd_gpu_direct_allreduce *direct = calloc(1, sizeof(*direct));
    size_t size = (size_t)team->layout->size;

    if (direct != NULL) {
        direct->sends = calloc(size, sizeof(direct->sends[0]));
        direct->recvs = calloc(size, sizeof(direct->recvs[0]));
    }
    if (direct == NULL || direct->sends == NULL || direct->recvs == NULL) {
        hvd_gpu_direct_destroy(direct);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a batch");
    }
    direct->gpu = gpu;
    direct->team = team;
    direct->channel = team->channel | (uint32_t)(number + 1) << number_shift;
    *out = direct;
    return 0;
}

void hvd_gpu_direct_destroy(struct hvd_gpu_direct_allreduce *direct)
{
    if (direct == NULL) {
        return;
    }
    if (direct->gpu != NULL) {
        hvd_gpu_job_end(direct->gpu, &direct->add);
    }
    free(direct->sends);
    free(direct->recvs);
    free(direct);
}

bool hvd_gpu_direct_is_held(const struct hvd_gpu_direct_allreduce *direct)
{
    return direct != NULL && hvd_gpu_job_is_held(&direct->add);
}

/* --- shares --- */

static char *share_at(const struct hvd_gpu_direct_allreduce *direct, int rank)
{
    return direct->chunk.data + rank * direct->share_bytes;
}

/* The last shares of a small chunk may be empty. */
static int64_t bytes_of_share(const struct hvd_gpu_direct_allreduce *direct, int rank)
{
    int64_t left = direct->chunk.bytes - rank * direct->share_bytes;

    return left <= 0 ? 0 : left < direct->share_bytes ? left : direct->share_bytes;
}

/* Returns the address that receives the copy from another rank. */
static char *copy_at(const struct hvd_gpu_direct_allreduce *direct, int rank)
{
    int other = rank < direct->team->rank ? rank : rank - 1;

    return direct->chunk.scratch + other * direct->share_bytes;
}

static struct hvd_net_flow *flow_to(const struct hvd_gpu_direct_allreduce *direct,
                                    int peer)
{
    return hvd_net_flow_get(direct->team->net, direct->team->ranks[peer],
                            direct->channel);
}

static void send_share(struct hvd_gpu_direct_allreduce *direct, int peer, int share)
{
    int64_t bytes = bytes_of_share(direct, share);
    struct hvd_net_flow *flow = flow_to(direct, peer);
    struct hvd_net_op *op = &direct->sends[peer];

    *op = (struct hvd_net_op){.data = share_at(direct, share),
                              .bytes = (size_t)bytes,
                              .is_device = true,
                              .status = flow != NULL ? 0 : HVD_ERR_NOMEM};
    if (bytes > 0 && flow != NULL) {
        hvd_net_send(flow, op);
    }
}

static void recv_share(struct hvd_gpu_direct_allreduce *direct, int peer, int share,
                       char *to)
{
    int64_t bytes = bytes_of_share(direct, share);
    struct hvd_net_flow *flow = flow_to(direct, peer);
    struct hvd_net_op *op = &direct->recvs[peer];

    *op = (struct hvd_net_op){.data = to,
                              .bytes = (size_t)bytes,
                              .is_device = true,
                              .status = flow != NULL ? 0 : HVD_ERR_NOMEM};
    if (bytes > 0 && flow != NULL) {
        hvd_net_recv(flow, op);
    }
}

/* Returns the i-th other rank, i >= 1. Each rank starts with a different peer. */
static int other_of(const struct hvd_gpu_direct_allreduce *direct, int i)
{
    return (direct->team->rank + i) % direct->team->layout->size;
}

/* Returns 0 when all operations have ended. */
static int await_ops(const struct hvd_gpu_direct_allreduce *direct,
                     const struct hvd_net_op *ops, struct hvd_error *err)
{
    int status = 0;

    for (int i = 1; i < direct->team->layout->size; i++) {
        int peer = other_of(direct, i);

        if (ops[peer].status < 0) {
            return hvd_fail(err, ops[peer].status,
                            "transfer of GPU memory to or from rank %d failed: %s",
                            direct->team->ranks[peer], hvd_status_name(ops[peer].status));
        }
        status = ops[peer].status != 0 ? HVD_INPROGRESS : status;
    }
    return status;
}

/* --- phases --- */

void hvd_gpu_direct_begin(struct hvd_gpu_direct_allreduce *direct,
                          const struct hvd_gpu_direct_chunk *chunk)
{
    direct->chunk = *chunk;
    direct->share_bytes = share_bytes(direct->team, chunk->bytes);
    direct->phase = READY;
    for (int i = 1; i < direct->team->layout->size; i++) {
        int peer = other_of(direct, i);

        recv_share(direct, peer, direct->team->rank, copy_at(direct, peer));
    }
}

bool hvd_gpu_direct_has_started(const struct hvd_gpu_direct_allreduce *direct)
{
    return direct->phase != READY;
}

void hvd_gpu_direct_start(struct hvd_gpu_direct_allreduce *direct)
{
    direct->phase = SCATTER;
    for (int i = 1; i < direct->team->layout->size; i++) {
        int peer = other_of(direct, i);

        send_share(direct, peer, peer);
    }
}

/* Adds up the copies, on the queue HVD_GPU_IN: its work waits only for events that are
 * already recorded, the inputs of other batches. On the queue of NCCL it could wait
 * behind collectives that wait for other ranks. */
static int begin_add(struct hvd_gpu_direct_allreduce *direct, struct hvd_error *err)
{
    const struct hvd_team *team = direct->team;
    const struct hvd_gpu_direct_chunk *chunk = &direct->chunk;
    int64_t bytes = bytes_of_share(direct, team->rank);
    const struct hvd_gpu_step add = {.kind = HVD_GPU_SUM_UP,
                                     .from = chunk->scratch,
                                     .own = share_at(direct, team->rank),
                                     .to = share_at(direct, team->rank),
                                     .count =
                                         bytes / (int64_t)hvd_dtype_bytes(chunk->dtype),
                                     .stride = direct->share_bytes,
                                     .sources = team->layout->size,
                                     .peer = team->rank,
                                     .dtype = chunk->dtype,
                                     .op = chunk->op};

    direct->phase = ADD;
    hvd_gpu_job_end(direct->gpu, &direct->add);
    if (bytes == 0) {
        return 0;
    }
    hvd_gpu_steps_add(&direct->add.steps, &add);
    return hvd_gpu_job_submit(direct->gpu, &direct->add, HVD_GPU_IN, NULL, err);
}

/* Starts to exchange the sums. The receives may overwrite the data that this rank sent in
 * the scatter, because those sends have ended. */
static void begin_gather(struct hvd_gpu_direct_allreduce *direct)
{
    direct->phase = GATHER;
    for (int i = 1; i < direct->team->layout->size; i++) {
        int peer = other_of(direct, i);

        send_share(direct, peer, direct->team->rank);
        recv_share(direct, peer, peer, share_at(direct, peer));
    }
}

/* Returns 0 when the phase has ended and the next one has started. */
static int end_phase(struct hvd_gpu_direct_allreduce *direct, struct hvd_error *err)
{
    int status;

    switch (direct->phase) {
    case SCATTER:
        status = await_ops(direct, direct->recvs, err);
        return status != 0 ? status : begin_add(direct, err);
    case ADD:
        status = hvd_gpu_job_reached(&direct->add, err);
        if (status == 0) {
            status = await_ops(direct, direct->sends, err);
        }
        if (status == 0) {
            begin_gather(direct);
        }
        return status;
    case GATHER:
        status = await_ops(direct, direct->recvs, err);
        if (status == 0) {
            status = await_ops(direct, direct->sends, err);
        }
        if (status == 0) {
            direct->phase = IDLE;
        }
        return status;
    default:
        return HVD_INPROGRESS;
    }
}

int hvd_gpu_direct_progress(struct hvd_gpu_direct_allreduce *direct, bool *moved,
                            struct hvd_error *err)
{
    int status = 0;

    while (status == 0 && direct->phase != IDLE) {
        status = end_phase(direct, err);
        *moved |= status == 0;
    }
    return status;
}
