/* SPDX-License-Identifier: Apache-2.0 */
/* The peer "ucx-limit": a sum of float32 between two nodes, written by hand. The ranks of
 * a node add up through shared memory (limit.h), and each exchanges its part with its
 * counterpart on the other node, by nothing but active messages of UCX that fit one
 * segment of the receiver, which adds them up from UCX's own buffer. A sender is at most
 * one window ahead of what it has received, so that messages do not pile up.
 *
 * A rank that cannot send closes the connection, so the counterpart's sends fail, too.
 * Both then exchange nothing more and report an error at the end of the call. */
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <ucp/api/ucp.h>

#include "contrib/bench/hvd_bench/contender.h"
#include "contrib/bench/hvd_bench/limit_setup.h"
#include "gpu_binding/base/number.h"

enum {
    AM_ID = 2,
    MESSAGE = 64000, /* fits UCX_TCP_RX_SEG_SIZE, 64 KB, with its headers */
    WINDOW = 512 * 1024,
    /* more than the messages of two ranges, or of two windows */
    HEADERS = 64,
    RANGES = 4, /* more than may be begun and not finished */
    /* Polls before sched_yield(), a call that is quick if no other process is ready. */
    POLLS = 100,
    ADDRESS_BYTES = 2048
};

struct peer;

/* Numbers that are exchanged. All bytes that a rank sends form one stream, in which a
 * range has the same place on both ranks. */
struct range {
    struct peer *peer;
    const float *in;
    float *out;
    float *copy; /* or NULL */
    uint64_t begin, end; /* in the stream */
    uint64_t added; /* bytes */
    int sending; /* messages */
};

/* A message that came before its range was begun. */
struct early {
    uint64_t position;
    size_t bytes;
    float data[MESSAGE / sizeof(float)];
};

struct peer {
    ucp_context_h context;
    ucp_worker_h worker; /* NULL after a failure */
    ucp_ep_h endpoint;
    int other; /* rank of the counterpart */
    struct bench_limit limit;
    struct bench_limit_exchange exchange;
    struct bench_limit_plan plan;
    struct bench_work *work;
    struct range ranges[RANGES];
    uint64_t begun, finished; /* ranges */
    uint64_t sent, received; /* bytes */
    uint64_t headers[HEADERS]; /* positions, of messages that may be in flight */
    uint64_t messages;
    /* At most one window of bytes is early. */
    struct early early[HEADERS];
    int early_count;
    float last, last_sum; /* a number that ends a series of sums */
    ucs_status_t failure; /* the first one; UCS_OK if there is none */
};

struct address {
    size_t bytes;
    char data[ADDRESS_BYTES];
};

static void keep_failure(struct peer *peer, ucs_status_t status)
{
    if (peer->failure == UCS_OK) {
        peer->failure = status;
    }
}

/* Whether a failure may have its cause on the other rank. */
static bool is_loss(ucs_status_t failure)
{
    switch (failure) {
    case UCS_ERR_CANCELED:
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_IO_ERROR:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_REJECTED:
    case UCS_ERR_TIMED_OUT:
    case UCS_ERR_UNREACHABLE:
        return true;
    default:
        return false;
    }
}

/* Closes the connection without the counterpart's help, and cancels what this rank sends.
 * UCX closes the sockets of an endpoint later, but those of a worker at once. */
static void disconnect(struct peer *peer)
{
    static const ucp_request_param_t params = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_EP_CLOSE_FLAG_FORCE,
    };

    if (peer->endpoint != NULL) {
        ucs_status_ptr_t request = ucp_ep_close_nbx(peer->endpoint, &params);

        if (UCS_PTR_IS_PTR(request)) {
            while (ucp_request_check_status(request) == UCS_INPROGRESS) {
                ucp_worker_progress(peer->worker);
            }
            ucp_request_free(request);
        }
        peer->endpoint = NULL;
    }
    if (peer->worker != NULL) {
        ucp_worker_destroy(peer->worker);
        peer->worker = NULL;
    }
}

static struct range *range_at(struct peer *peer, uint64_t number)
{
    return &peer->ranges[number % RANGES];
}

/* Returns the range that has this position, or NULL if it has not begun. */
static struct range *find_range(struct peer *peer, uint64_t position)
{
    for (uint64_t i = peer->finished; i < peer->begun; i++) {
        struct range *range = range_at(peer, i);

        if (position < range->end) {
            return range;
        }
    }
    return NULL;
}

static float float_at(const char *data, size_t index)
{
    float value;

    memcpy(&value, data + index * sizeof(value), sizeof(value));
    return value;
}

/* Adds a message to this rank's numbers. UCX does not align the data. */
static void add_message(struct range *range, uint64_t position, const void *data,
                        size_t bytes)
{
    size_t first = (position - range->begin) / sizeof(float);
    size_t count = bytes / sizeof(float);
    const float *restrict in = range->in + first;
    const char *restrict other = data;
    float *restrict out = range->out + first;

    if (range->copy == NULL) {
        for (size_t i = 0; i < count; i++) {
            out[i] = in[i] + float_at(other, i);
        }
    } else {
        float *restrict copy = range->copy + first;

        for (size_t i = 0; i < count; i++) {
            float sum = in[i] + float_at(other, i);

            out[i] = sum;
            copy[i] = sum;
        }
    }
    range->added += bytes;
}

static ucs_status_t on_arrival(void *arg, const void *header, size_t header_bytes,
                               void *data, size_t bytes, const ucp_am_recv_param_t *param)
{
    struct peer *peer = arg;
    struct range *range;
    uint64_t position;

    (void)header_bytes;
    (void)param;
    if (peer->failure != UCS_OK) {
        return UCS_OK; /* its range may have been given up */
    }
    memcpy(&position, header, sizeof(position));
    range = find_range(peer, position);
    if (range != NULL) {
        add_message(range, position, data, bytes);
    } else {
        struct early *early = &peer->early[peer->early_count++];

        early->position = position;
        early->bytes = bytes;
        memcpy(early->data, data, bytes);
    }
    peer->received += bytes;
    return UCS_OK;
}

/* Adds early messages whose range has begun, and keeps the others. */
static void add_early(struct peer *peer)
{
    int kept = 0;

    for (int i = 0; i < peer->early_count; i++) {
        struct early *early = &peer->early[i];
        struct range *range = find_range(peer, early->position);

        if (range != NULL) {
            add_message(range, early->position, early->data, early->bytes);
        } else if (kept++ != i) {
            peer->early[kept - 1] = *early;
        }
    }
    peer->early_count = kept;
}

static void on_sent(void *request, ucs_status_t status, void *user_data)
{
    struct range *range = user_data;

    keep_failure(range->peer, status);
    range->sending--;
    ucp_request_free(request);
}

/* Sends the next message. */
static void send_one(struct peer *peer)
{
    struct range *range = find_range(peer, peer->sent);
    uint64_t rest = range->end - peer->sent;
    uint64_t *header = &peer->headers[peer->messages++ % HEADERS];
    size_t bytes = rest < MESSAGE ? rest : MESSAGE;
    const ucp_request_param_t params = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = on_sent,
        .user_data = range,
    };
    ucs_status_ptr_t request;

    *header = peer->sent;
    range->sending++;
    request = ucp_am_send_nbx(peer->endpoint, AM_ID, header, sizeof(*header),
                              (const char *)range->in + (peer->sent - range->begin),
                              bytes, &params);
    if (!UCS_PTR_IS_PTR(request)) {
        range->sending--;
        keep_failure(peer, UCS_PTR_STATUS(request));
    }
    peer->sent += bytes;
}

/* Sends what the window allows. After a failure, tells the counterpart. */
static void send_window(struct peer *peer)
{
    uint64_t end =
        peer->finished < peer->begun ? range_at(peer, peer->begun - 1)->end : peer->sent;

    while (peer->failure == UCS_OK && peer->sent < end &&
           peer->sent < peer->received + WINDOW) {
        send_one(peer);
    }
    if (peer->failure != UCS_OK) {
        disconnect(peer);
    }
}

static void begin_range(void *self, const float *part, float *out, float *copy,
                        int64_t count)
{
    struct peer *peer = self;
    uint64_t begin = peer->begun > 0 ? range_at(peer, peer->begun - 1)->end : 0;

    *range_at(peer, peer->begun++) =
        (struct range){.peer = peer,
                       .in = part,
                       .out = out,
                       .copy = copy,
                       .begin = begin,
                       .end = begin + (uint64_t)count * sizeof(float)};
    if (peer->early_count > 0 && peer->failure == UCS_OK) {
        add_early(peer);
    }
    send_window(peer);
}

static int progress_ranges(struct peer *peer)
{
    int events = peer->worker != NULL ? (int)ucp_worker_progress(peer->worker) : 0;

    send_window(peer);
    return events;
}

static void progress_once(void *self)
{
    progress_ranges(self);
}

static void finish_range(void *self)
{
    struct peer *peer = self;
    struct range *range = range_at(peer, peer->finished);
    int idle = 0;

    while ((peer->sent < range->end || range->sending > 0 ||
            range->added < range->end - range->begin) &&
           peer->failure == UCS_OK) {
        idle = progress_ranges(peer) != 0 ? 0 : idle + 1;
        if (idle == POLLS) {
            sched_yield();
            idle = 0;
        }
    }
    peer->finished++;
}

/* If the socket is full, UCX keeps the rest of a message that it has taken. So the ranks
 * exchange one number more: when it comes, the counterpart has all earlier messages, and
 * this rank's socket has room for its own number. (ucp_ep_flush_nbx would not do: it
 * needs an answer, for which the counterpart may not stay.) */
static void flush_ranges(void *self)
{
    struct peer *peer = self;

    begin_range(peer, &peer->last, &peer->last_sum, NULL, 1);
    finish_range(peer);
    progress_ranges(peer);
}

/* Sums without other ranks of the node. */
static void sum_alone(struct peer *peer, int calls)
{
    const struct bench_work *work = peer->work;

    for (int call = 0; call < calls; call++) {
        begin_range(peer, (const float *)work->input, (float *)work->output, NULL,
                    work->input_count);
        finish_range(peer);
    }
    flush_ranges(peer);
}

static int report_failure(const struct peer *peer, struct hvd_error *err)
{
    if (peer->failure == UCS_OK) {
        return 0;
    }
    return is_loss(peer->failure)
               ? hvd_fail(err, HVD_ERR_PEER,
                          "ucx-limit: UCX has lost the connection to rank %d: %s",
                          peer->other, ucs_status_string(peer->failure))
               : hvd_fail(err, HVD_ERR_NET, "ucx-limit: UCX cannot send to rank %d: %s",
                          peer->other, ucs_status_string(peer->failure));
}

static int run_ucx(void *self, int calls, double *seconds, struct hvd_error *err)
{
    struct peer *peer = self;
    double start = bench_now();

    if (peer->limit.memory != NULL) {
        bench_limit_run(&peer->limit, peer->work, &peer->plan, calls);
    } else {
        sum_alone(peer, calls);
    }
    *seconds = bench_now() - start;
    return report_failure(peer, err);
}

static int prepare_ucx(void *self, struct bench_work *work, struct hvd_error *err)
{
    struct peer *peer = self;
    int status = bench_limit_supports(work, err);

    peer->work = work;
    if (status < 0 || peer->limit.memory == NULL) {
        return status;
    }
    status = bench_limit_choose(&peer->limit, work, &peer->plan, err);
    return status < 0 ? status : report_failure(peer, err);
}

static void destroy_ucx(void *self)
{
    struct peer *peer = self;

    disconnect(peer);
    if (peer->context != NULL) {
        ucp_cleanup(peer->context);
    }
    bench_limit_close(&peer->limit);
    free(peer);
}

static const struct bench_contender_ops ops = {
    .prepare = prepare_ucx,
    .run = run_ucx,
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

static void on_failure(void *arg, ucp_ep_h endpoint, ucs_status_t status)
{
    (void)endpoint;
    keep_failure(arg, status);
}

/* Exchanges the first numbers. Until a message of each rank has come through, UCX may not
 * notice that the counterpart closes the connection, or may abort the process (1.13.1).
 * So the ranks learn by hvd whether the first message was sent. */
static int exchange_first(struct peer *peer, struct hvd_error *err)
{
    int status;

    begin_range(peer, &peer->last, &peer->last_sum, NULL, 1);
    status = bench_job_agree(report_failure(peer, err), err);
    if (status < 0) {
        return status;
    }
    finish_range(peer);
    flush_ranges(peer);
    return bench_job_agree(report_failure(peer, err), err);
}

/* Connects to the rank with the same local rank on the other node. */
static int join_other(struct peer *peer, const struct bench_job *job,
                      struct hvd_error *err)
{
    struct address mine = {0}, *all = calloc((size_t)job->size, sizeof(all[0]));
    ucs_status_t made = open_worker(peer);
    int status;

    peer->other =
        hvd_layout_rank(&job->layout, 1 - job->layout.node[job->rank], job->local_rank);
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
        const ucp_ep_params_t params = {
            .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                          UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                          UCP_EP_PARAM_FIELD_ERR_HANDLER,
            .address = (const ucp_address_t *)all[peer->other].data,
            .err_mode = UCP_ERR_HANDLING_MODE_PEER,
            .err_handler = {.cb = on_failure, .arg = peer},
        };

        made = ucp_ep_create(peer->worker, &params, &peer->endpoint);
        status = made == UCS_OK ? 0
                                : hvd_fail(err, HVD_ERR_UNSUPPORTED, "UCX: %s",
                                           ucs_status_string(made));
        status = bench_job_agree(status, err);
    }
    if (status == 0) {
        status = exchange_first(peer, err);
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
    status = bench_job_agree(status, err);
    if (status < 0) {
        free(out->self);
        return status;
    }
    peer = out->self;
    peer->exchange = (struct bench_limit_exchange){peer, begin_range, finish_range,
                                                   progress_once, flush_ranges};
    status = join_other(peer, job, err);
    if (status == 0 && job->local_size > 1) {
        status = bench_limit_open(&peer->limit, job, &peer->exchange, err);
    }
    if (status < 0) {
        destroy_ucx(peer);
    }
    return status;
}
