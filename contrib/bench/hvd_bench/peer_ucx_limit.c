/* SPDX-License-Identifier: Apache-2.0 */
/* The peer "ucx-limit": the cost of a sum between two nodes with nothing but UCX. Each
 * rank of one node sends its data to its counterpart on the other, in active messages
 * that fit one segment of the receiver, which adds them up from UCX's own buffer. A
 * sender is at most one window ahead of what it has received, so that messages do not
 * pile up.
 *
 * Messages of the other rank's next sum may arrive during this one. They are added at
 * once, too. The result is still right, because all calls of a block have the same input,
 * and a barrier separates blocks.
 *
 * With several ranks on a node each pair exchanges its share of the bytes. The work
 * within the node is left out: this is a limit for the network part. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <ucp/api/ucp.h>

#include "contrib/bench/hvd_bench/contender.h"
#include "gpu_binding/base/number.h"

enum {
    AM_ID = 2,
    MESSAGE = 64000, /* fits UCX_TCP_RX_SEG_SIZE, 64 KB, with its headers */
    WINDOW = 512 * 1024,
    /* One rank is at most 2 * (WINDOW / MESSAGE + 1) messages ahead of the other; this is
     * more. */
    HEADERS = 32,
    /* Polls before sched_yield(), a call that is quick if no other process is ready. */
    POLLS = 100,
    ADDRESS_BYTES = 2048
};

struct peer {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h endpoint;
    int local_rank;
    int local_size;
    struct bench_work *work;
    char *in, *out; /* this rank's share */
    size_t bytes;
    uint64_t sums; /* sums of the present work so far */
    uint64_t received; /* bytes received so far, by all sums of the present work */
    int sending;
    uint64_t offsets[HEADERS]; /* headers of messages that may be in flight */
};

struct address {
    size_t bytes;
    char data[ADDRESS_BYTES];
};

/* Sums the floats of a message into the result. The header says at which offset, in
 * bytes. */
static ucs_status_t on_arrival(void *arg, const void *header, size_t header_bytes,
                               void *data, size_t bytes, const ucp_am_recv_param_t *param)
{
    struct peer *peer = arg;
    size_t offset, count = bytes / sizeof(float);
    const float *restrict in, *restrict other = data;
    float *out;

    (void)header_bytes;
    (void)param;
    memcpy(&offset, header, sizeof(offset));
    in = (const float *)(peer->in + offset);
    out = (float *)(peer->out + offset);
    for (size_t i = 0; i < count; i++) {
        out[i] = in[i] + other[i];
    }
    peer->received += bytes;
    return UCS_OK;
}

static void on_sent(void *request, ucs_status_t status, void *user_data)
{
    struct peer *peer = user_data;

    (void)status;
    peer->sending--;
    ucp_request_free(request);
}

static int send_one(struct peer *peer, size_t offset)
{
    size_t rest = peer->bytes - offset, bytes = rest < MESSAGE ? rest : MESSAGE;
    uint64_t *header = &peer->offsets[offset / MESSAGE % HEADERS];
    const ucp_request_param_t params = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = on_sent,
        .user_data = peer,
    };
    ucs_status_ptr_t request;

    *header = offset;
    request = ucp_am_send_nbx(peer->endpoint, AM_ID, header, sizeof(*header),
                              peer->in + offset, bytes, &params);
    if (UCS_PTR_IS_ERR(request)) {
        return HVD_ERR_NET;
    }
    peer->sending += UCS_PTR_IS_PTR(request) ? 1 : 0;
    return 0;
}

/* Sends and receives one sum. before: the bytes of all earlier sums. */
static int sum_once(struct peer *peer, uint64_t before)
{
    size_t sent = 0;
    int idle = 0;

    while (sent < peer->bytes || peer->received < before + peer->bytes ||
           peer->sending > 0) {
        while (sent < peer->bytes && before + sent < peer->received + WINDOW) {
            if (send_one(peer, sent) < 0) {
                return HVD_ERR_NET;
            }
            sent += MESSAGE;
        }
        idle = ucp_worker_progress(peer->worker) != 0 ? 0 : idle + 1;
        if (idle == POLLS) {
            sched_yield();
            idle = 0;
        }
    }
    peer->sums++;
    return 0;
}

static int run_ucx(void *self, int calls, double *seconds, struct hvd_error *err)
{
    struct peer *peer = self;
    double start = bench_now();

    for (int call = 0; call < calls; call++) {
        if (sum_once(peer, peer->sums * peer->bytes) < 0) {
            return hvd_fail(err, HVD_ERR_NET, "ucx-limit: UCX cannot send");
        }
    }
    *seconds = bench_now() - start;
    return 0;
}

/* Checks the result: only this rank's share is added. */
static int check_ucx(void *self, struct hvd_error *err)
{
    struct peer *peer = self;
    double seconds;
    int status = run_ucx(self, 1, &seconds, err);

    return status < 0 || peer->local_size > 1
               ? status
               : bench_work_check(peer->work, peer->work->output, "ucx-limit", err);
}

static int prepare_ucx(void *self, struct bench_work *work, struct hvd_error *err)
{
    struct peer *peer = self;
    int64_t begin, end;

    if (work->collective != BENCH_ALLREDUCE || work->dtype != HVD_FLOAT32 ||
        work->op != HVD_SUM) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "it is for sums of float32 by allreduce only");
    }
    begin = work->input_count * peer->local_rank / peer->local_size;
    end = work->input_count * (peer->local_rank + 1) / peer->local_size;
    peer->work = work;
    peer->in = work->input + (size_t)begin * sizeof(float);
    peer->out = work->output + (size_t)begin * sizeof(float);
    peer->bytes = (size_t)(end - begin) * sizeof(float);
    peer->sums = peer->received = 0;
    return 0;
}

static void close_endpoint(struct peer *peer)
{
    static const ucp_request_param_t params = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_EP_CLOSE_FLAG_FORCE,
    };
    ucs_status_ptr_t request = ucp_ep_close_nbx(peer->endpoint, &params);

    if (UCS_PTR_IS_PTR(request)) {
        while (ucp_request_check_status(request) == UCS_INPROGRESS) {
            ucp_worker_progress(peer->worker);
        }
        ucp_request_free(request);
    }
}

static void destroy_ucx(void *self)
{
    struct peer *peer = self;

    if (peer->endpoint != NULL) {
        close_endpoint(peer);
    }
    if (peer->worker != NULL) {
        ucp_worker_destroy(peer->worker);
    }
    if (peer->context != NULL) {
        ucp_cleanup(peer->context);
    }
    free(peer);
}

static const struct bench_contender_ops ops = {
    .prepare = prepare_ucx,
    .run = run_ucx,
    .check = check_ucx,
    .destroy = destroy_ucx,
};

static ucs_status_t open_worker(struct peer *peer)
{
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                 .features = UCP_FEATURE_AM};
    const ucp_worker_params_t worker_params = {.field_mask =
                                                   UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                               .thread_mode = UCS_THREAD_MODE_SINGLE};
    const ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                      UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = AM_ID,
        .flags = UCP_AM_FLAG_WHOLE_MSG,
        .cb = on_arrival,
        .arg = peer,
    };
    ucs_status_t status = ucp_init(&params, NULL, &peer->context);

    if (status == UCS_OK) {
        status = ucp_worker_create(peer->context, &worker_params, &peer->worker);
    }
    return status == UCS_OK ? ucp_worker_set_am_recv_handler(peer->worker, &handler)
                            : status;
}

static ucs_status_t write_address(struct peer *peer, struct address *mine)
{
    ucp_address_t *address;
    ucs_status_t status = ucp_worker_get_address(peer->worker, &address, &mine->bytes);

    if (status == UCS_OK) {
        if (mine->bytes > ADDRESS_BYTES) {
            status = UCS_ERR_BUFFER_TOO_SMALL;
        } else {
            memcpy(mine->data, address, mine->bytes);
        }
        ucp_worker_release_address(peer->worker, address);
    }
    return status;
}

/* Connects to the rank with the same local rank on the other node. */
static int join_other(struct peer *peer, const struct bench_job *job,
                      struct hvd_error *err)
{
    struct address mine = {0}, *all = calloc((size_t)job->size, sizeof(all[0]));
    int other =
        hvd_layout_rank(&job->layout, 1 - job->layout.node[job->rank], job->local_rank);
    ucs_status_t made = open_worker(peer);
    int status;

    if (made == UCS_OK) {
        made = write_address(peer, &mine);
    }
    status = all != NULL && made == UCS_OK
                 ? 0
                 : hvd_fail(err, HVD_ERR_UNSUPPORTED, "UCX: %s", ucs_status_string(made));
    status = bench_job_agree(status, err);
    if (status == 0) {
        status = bench_job_gather(&mine, sizeof(mine), all, err);
    }
    if (status == 0) {
        const ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                                        .address =
                                            (const ucp_address_t *)all[other].data};

        made = ucp_ep_create(peer->worker, &params, &peer->endpoint);
        status = made == UCS_OK ? 0
                                : hvd_fail(err, HVD_ERR_UNSUPPORTED, "UCX: %s",
                                           ucs_status_string(made));
        status = bench_job_agree(status, err);
    }
    free(all);
    return status;
}

int bench_ucx_limit_create(const struct bench_job *job, const char *program,
                           struct bench_contender *out, struct hvd_error *err)
{
    struct peer *peer;
    int status;

    (void)program;
    if (job->layout.nodes != 2 || !hvd_layout_is_homogeneous(&job->layout)) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "it is for two nodes with equally many ranks; this job has %d "
                        "node%s",
                        job->layout.nodes, hvd_number_plural(job->layout.nodes));
    }
    status = bench_contender_create("ucx-limit", &ops, sizeof(*peer), out, err);
    if (status < 0) {
        return status;
    }
    peer = out->self;
    peer->local_rank = job->local_rank;
    peer->local_size = job->local_size;
    status = join_other(peer, job, err);
    if (status < 0) {
        destroy_ucx(peer);
    }
    return status;
}
