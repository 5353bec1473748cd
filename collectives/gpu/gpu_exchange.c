/* SPDX-License-Identifier: Apache-2.0 */
/* An allreduce of one piece of device memory among the ranks of a team. */
#include "collectives/gpu/gpu_exchange.h"

#include <stdlib.h>

#include "gpu_binding/base/error.h"

/* Of a share: what kernels read and write at once, and any element. */
static const int64_t alignment = 256;

/* Those of a team are one of its own and these, by the bits that no team's number has. */
static const int number_shift = 28;

enum phase {
    IDLE,
    READY, /* until start */
    SCATTER, /* until all versions of my share are here */
    ADD, /* until the device has added them up, and the others have my shares */
    GATHER, /* until the others have it, and I have theirs */
};

struct hvd_gpu_exchange {
    struct hvd_gpu *gpu;
    const struct hvd_team *team;
    uint32_t channel;
    enum phase phase;
    struct hvd_gpu_exchanged exchanged;
    int64_t share_bytes; /* of each but the last */
    struct hvd_gpu_job add;
    struct hvd_net_op *sends; /* [size], to each of the others, of the present phase */
    struct hvd_net_op *recvs; /* [size], from each of the others */
};

static int64_t share_bytes(const struct hvd_team *team, int64_t bytes)
{
    int64_t size = team->layout->size;
    int64_t share = (bytes + size - 1) / size;

    return (share + alignment - 1) / alignment * alignment;
}

int64_t hvd_gpu_exchange_room(const struct hvd_team *team, int64_t bytes)
{
    return share_bytes(team, bytes) * (team->layout->size - 1);
}

int hvd_gpu_exchange_create(struct hvd_gpu *gpu, const struct hvd_team *team, int number,
                            struct hvd_gpu_exchange **out, struct hvd_error *err)
{
    struct hvd_gpu_exchange *exchange = calloc(1, sizeof(*exchange));
    size_t size = (size_t)team->layout->size;

    if (exchange != NULL) {
        exchange->sends = calloc(size, sizeof(exchange->sends[0]));
        exchange->recvs = calloc(size, sizeof(exchange->recvs[0]));
    }
    if (exchange == NULL || exchange->sends == NULL || exchange->recvs == NULL) {
        hvd_gpu_exchange_destroy(exchange);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a batch");
    }
    exchange->gpu = gpu;
    exchange->team = team;
    exchange->channel = team->channel | (uint32_t)(number + 1) << number_shift;
    *out = exchange;
    return 0;
}

void hvd_gpu_exchange_destroy(struct hvd_gpu_exchange *exchange)
{
    if (exchange == NULL) {
        return;
    }
    if (exchange->gpu != NULL) {
        hvd_gpu_job_end(exchange->gpu, &exchange->add);
    }
    free(exchange->sends);
    free(exchange->recvs);
    free(exchange);
}

bool hvd_gpu_exchange_is_held(const struct hvd_gpu_exchange *exchange)
{
    return exchange != NULL && hvd_gpu_job_is_held(&exchange->add);
}

/* --- shares --- */

static char *share_at(const struct hvd_gpu_exchange *exchange, int rank)
{
    return exchange->exchanged.data + rank * exchange->share_bytes;
}

/* Of small pieces the last ranks have little, or nothing. */
static int64_t bytes_of_share(const struct hvd_gpu_exchange *exchange, int rank)
{
    int64_t left = exchange->exchanged.bytes - rank * exchange->share_bytes;

    return left <= 0 ? 0 : left < exchange->share_bytes ? left : exchange->share_bytes;
}

/* Where the version of another rank comes to. */
static char *version_at(const struct hvd_gpu_exchange *exchange, int rank)
{
    int other = rank < exchange->team->rank ? rank : rank - 1;

    return exchange->exchanged.room + other * exchange->share_bytes;
}

static void send(struct hvd_gpu_exchange *exchange, int peer, int share)
{
    int64_t bytes = bytes_of_share(exchange, share);

    exchange->sends[peer].status = 0;
    if (bytes > 0) {
        hvd_net_send_device(exchange->team->net, exchange->team->ranks[peer],
                            exchange->channel, share_at(exchange, share), (size_t)bytes,
                            &exchange->sends[peer]);
    }
}

static void recv(struct hvd_gpu_exchange *exchange, int peer, int share, char *to)
{
    int64_t bytes = bytes_of_share(exchange, share);

    exchange->recvs[peer].status = 0;
    if (bytes > 0) {
        hvd_net_recv_device(exchange->team->net, exchange->team->ranks[peer],
                            exchange->channel, to, (size_t)bytes, &exchange->recvs[peer]);
    }
}

/* The i-th of the others, i from 1: not all ranks begin with the same one. */
static int other_of(const struct hvd_gpu_exchange *exchange, int i)
{
    return (exchange->team->rank + i) % exchange->team->layout->size;
}

/* Returns 0 when all are done. */
static int await(const struct hvd_gpu_exchange *exchange, const struct hvd_net_op *ops,
                 struct hvd_error *err)
{
    int status = 0;

    for (int i = 1; i < exchange->team->layout->size; i++) {
        int peer = other_of(exchange, i);

        if (ops[peer].status < 0) {
            return hvd_fail(err, ops[peer].status, "GPU memory to or from rank %d: %s",
                            exchange->team->ranks[peer],
                            hvd_status_name(ops[peer].status));
        }
        status = ops[peer].status != 0 ? HVD_INPROGRESS : status;
    }
    return status;
}

/* --- phases --- */

void hvd_gpu_exchange_begin(struct hvd_gpu_exchange *exchange,
                            const struct hvd_gpu_exchanged *exchanged)
{
    exchange->exchanged = *exchanged;
    exchange->share_bytes = share_bytes(exchange->team, exchanged->bytes);
    exchange->phase = READY;
    for (int i = 1; i < exchange->team->layout->size; i++) {
        int peer = other_of(exchange, i);

        recv(exchange, peer, exchange->team->rank, version_at(exchange, peer));
    }
}

bool hvd_gpu_exchange_has_started(const struct hvd_gpu_exchange *exchange)
{
    return exchange->phase != READY;
}

void hvd_gpu_exchange_start(struct hvd_gpu_exchange *exchange)
{
    exchange->phase = SCATTER;
    for (int i = 1; i < exchange->team->layout->size; i++) {
        int peer = other_of(exchange, i);

        send(exchange, peer, peer);
    }
}

/* Not on the queue of NCCL's collectives, which wait for other ranks. What IN waits for, the inputs
 * of other batches, is recorded already, and waits for none. */
static int begin_add(struct hvd_gpu_exchange *exchange, struct hvd_error *err)
{
    const struct hvd_team *team = exchange->team;
    const struct hvd_gpu_exchanged *exchanged = &exchange->exchanged;
    int64_t bytes = bytes_of_share(exchange, team->rank);
    const struct hvd_gpu_step add = {.kind = HVD_GPU_SUM_UP,
                                     .from = exchanged->room,
                                     .own = share_at(exchange, team->rank),
                                     .to = share_at(exchange, team->rank),
                                     .count = bytes /
                                              (int64_t)hvd_dtype_bytes(exchanged->dtype),
                                     .stride = exchange->share_bytes,
                                     .sources = team->layout->size,
                                     .peer = team->rank,
                                     .dtype = exchanged->dtype,
                                     .op = exchanged->op};

    exchange->phase = ADD;
    hvd_gpu_job_end(exchange->gpu, &exchange->add);
    if (bytes == 0) {
        return 0;
    }
    hvd_gpu_steps_add(&exchange->add.steps, &add);
    return hvd_gpu_job_submit(exchange->gpu, &exchange->add, HVD_GPU_IN, NULL, err);
}

/* What comes is written where this rank's own version was sent from. */
static void begin_gather(struct hvd_gpu_exchange *exchange)
{
    exchange->phase = GATHER;
    for (int i = 1; i < exchange->team->layout->size; i++) {
        int peer = other_of(exchange, i);

        send(exchange, peer, exchange->team->rank);
        recv(exchange, peer, peer, share_at(exchange, peer));
    }
}

/* Returns 0 when the phase is over, and the next one has begun. */
static int end_phase(struct hvd_gpu_exchange *exchange, struct hvd_error *err)
{
    int status;

    switch (exchange->phase) {
    case SCATTER:
        status = await(exchange, exchange->recvs, err);
        return status != 0 ? status : begin_add(exchange, err);
    case ADD:
        status = hvd_gpu_job_reached(&exchange->add, err);
        status = status != 0 ? status : await(exchange, exchange->sends, err);
        if (status == 0) {
            begin_gather(exchange);
        }
        return status;
    case GATHER:
        status = await(exchange, exchange->recvs, err);
        status = status != 0 ? status : await(exchange, exchange->sends, err);
        exchange->phase = status == 0 ? IDLE : exchange->phase;
        return status;
    default:
        return HVD_INPROGRESS;
    }
}

int hvd_gpu_exchange_progress(struct hvd_gpu_exchange *exchange, bool *moved,
                              struct hvd_error *err)
{
    int status = 0;

    while (status == 0 && exchange->phase != IDLE) {
        status = end_phase(exchange, err);
        *moved |= status == 0;
    }
    return status;
}
