/* SPDX-License-Identifier: Apache-2.0 */
/* UCX as a transport of the net. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucp/api/ucp.h>

#include "collectives/transport/net/ucx/ucx_quiet.h"
#include "collectives/transport/net/ucx_module.h"
#include "gpu_binding/base/attr.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/thread.h"

#define AM_ID 1

/* Time limit for closing endpoints. UCX closes them by itself; only a bug would take
 * longer. */
#define CLOSE_MS 1000

struct endpoint {
    struct endpoint *next;
    struct hvd_ucx *ucx;
    ucp_ep_h ep; /* NULL once the endpoint is being closed */
    void *peer;
    void *closing; /* UCX's close request; NULL when the endpoint is closed */
    char reason[100]; /* why the endpoint has failed */
};

struct hvd_ucx {
    struct hvd_net_handlers handlers;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *address;
    size_t address_bytes;
    int fd;
    struct endpoint *endpoints;
};

static int from_ucs(ucs_status_t status)
{
    switch (status) {
    case UCS_OK:
        return 0;
    case UCS_ERR_NO_MEMORY:
        return HVD_ERR_NOMEM;
    case UCS_ERR_CANCELED:
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_REJECTED:
    case UCS_ERR_UNREACHABLE:
        return HVD_ERR_PEER;
    default:
        return HVD_ERR_NET;
    }
}

static void release_data(void *context, void *data)
{
    struct hvd_ucx *ucx = context;

    ucp_am_data_release(ucx->worker, data);
}

static ucs_status_t on_arrival(void *arg, const void *header, size_t header_bytes,
                               void *data, size_t bytes, const ucp_am_recv_param_t *param)
{
    struct hvd_ucx *ucx = arg;
    bool may_keep = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0;
    bool is_offer = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
    struct hvd_net_header aligned;
    struct hvd_net_flow_arrival arrival = {
        .header = &aligned,
        .data = data,
        .bytes = bytes,
        .is_offer = is_offer,
        .release = may_keep || is_offer ? release_data : NULL,
        .release_context = ucx,
    };

    if (header_bytes == sizeof(aligned)) {
        memcpy(&aligned, header, sizeof(aligned));
    } else {
        arrival.header = NULL;
    }
    return ucx->handlers.arrived(ucx->handlers.context, &arrival) == HVD_INPROGRESS
               ? UCS_INPROGRESS
               : UCS_OK;
}

static void on_sent(void *request, ucs_status_t status, void *user_data)
{
    struct hvd_net_fragment *fragment = user_data;
    struct hvd_ucx *ucx = fragment->transport;

    ucp_request_free(request);
    ucx->handlers.sent(ucx->handlers.context, fragment, from_ucs(status));
}

static void on_fetched(void *request, ucs_status_t status, size_t bytes, void *user_data)
{
    struct hvd_net_op *op = user_data;
    struct hvd_ucx *ucx = op->transport;

    (void)bytes;
    ucp_request_free(request);
    ucx->handlers.fetched(ucx->handlers.context, op, from_ucs(status));
}

static void on_failure(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    struct endpoint *endpoint = arg;
    struct hvd_ucx *ucx = endpoint->ucx;

    (void)ep;
    snprintf(endpoint->reason, sizeof(endpoint->reason), "UCX: %s",
             ucs_status_string(status));
    ucx->handlers.failed(ucx->handlers.context, endpoint->peer, endpoint->reason);
}

static int fail_ucx(struct hvd_error *err, const char *what, ucs_status_t status)
{
    return hvd_fail(err, from_ucs(status), "UCX cannot %s: %s", what,
                    ucs_status_string(status));
}

static int open_context(struct hvd_ucx *ucx, bool has_rdma, struct hvd_error *err)
{
    const ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
    };
    ucp_config_t *config = NULL;
    ucs_status_t status = ucp_config_read(NULL, NULL, &config);

    if (status == UCS_OK && getenv(HVD_ENV_UCX_TLS) == NULL) {
        /* Ranks of one node use shared memory of hvd. TCP is not needed if there is RDMA,
         * and its ports would trust anyone who connects. */
        status = ucp_config_modify(config, "TLS", has_rdma ? "^shm,tcp" : "^shm");
    }
    if (status == UCS_OK) {
        status = ucp_init(&params, config, &ucx->context);
    }
    if (config != NULL) {
        ucp_config_release(config);
    }
    if (status == UCS_ERR_NO_DEVICE) {
        return hvd_fail(err, HVD_ERR_NET,
                        "UCX found no network that it may use: check " HVD_ENV_UCX_TLS
                        " and " HVD_ENV_UCX_NET_DEVICES "; " HVD_ENV_UCX_LOG_LEVEL
                        "=info shows what it found");
    }
    return status == UCS_OK ? 0 : fail_ucx(err, "start", status);
}

static int open_worker(struct hvd_ucx *ucx, struct hvd_error *err)
{
    const ucp_worker_params_t params = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SERIALIZED,
    };
    const ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                      UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = AM_ID,
        .flags = UCP_AM_FLAG_WHOLE_MSG,
        .cb = on_arrival,
        .arg = ucx,
    };
    ucs_status_t status = ucp_worker_create(ucx->context, &params, &ucx->worker);

    if (status == UCS_OK) {
        status = ucp_worker_set_am_recv_handler(ucx->worker, &handler);
    }
    if (status == UCS_OK) {
        status = ucp_worker_get_address(ucx->worker, &ucx->address, &ucx->address_bytes);
    }
    if (status == UCS_OK) {
        status = ucp_worker_get_efd(ucx->worker, &ucx->fd);
    }
    return status == UCS_OK ? 0 : fail_ucx(err, "open a worker", status);
}

static void destroy_ucx(void *self);

static int create_ucx(const struct hvd_net_handlers *handlers,
                      const struct hvd_ucx_settings *settings, struct hvd_ucx **out,
                      struct hvd_error *err)
{
    struct hvd_ucx *ucx = calloc(1, sizeof(*ucx));
    sigset_t signals;
    int status;

    hvd_ucx_restore_signals();
    if (ucx == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    ucx->handlers = *handlers;
    hvd_ucx_quiet(settings->log);
    hvd_thread_block_signals(&signals); /* UCX's own thread inherits the mask */
    status = open_context(ucx, settings->has_rdma, err);
    if (status == 0) {
        status = open_worker(ucx, err);
    }
    hvd_thread_restore_signals(&signals);
    if (status != 0) {
        destroy_ucx(ucx);
        return status;
    }
    *out = ucx;
    return 0;
}

static void get_address(const struct hvd_ucx *ucx, const void **address, size_t *bytes)
{
    *address = ucx->address;
    *bytes = ucx->address_bytes;
}

static int open_endpoint(void *self, int rank, const void *address, size_t bytes,
                         void *peer, void **out)
{
    struct hvd_ucx *ucx = self;
    struct endpoint *endpoint = calloc(1, sizeof(*endpoint));
    const ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = address,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = on_failure, .arg = endpoint},
    };
    ucs_status_t status;

    (void)rank;
    (void)bytes;
    if (endpoint == NULL) {
        return HVD_ERR_NOMEM;
    }
    endpoint->ucx = ucx;
    endpoint->peer = peer;
    status = ucp_ep_create(ucx->worker, &params, &endpoint->ep);
    if (status != UCS_OK) {
        free(endpoint);
        return from_ucs(status);
    }
    endpoint->next = ucx->endpoints;
    ucx->endpoints = endpoint;
    *out = endpoint;
    return 0;
}

static void close_endpoint(void *self, void *opened)
{
    static const ucp_request_param_t params = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_EP_CLOSE_FLAG_FORCE,
    };
    struct endpoint *endpoint = opened;
    ucs_status_ptr_t request;

    (void)self;
    if (endpoint->ep == NULL) {
        return;
    }
    request = ucp_ep_close_nbx(endpoint->ep, &params);
    endpoint->ep = NULL;
    endpoint->closing = UCS_PTR_IS_PTR(request) ? request : NULL;
}

static int send_fragment(void *self, void *opened, struct hvd_net_fragment *fragment)
{
    struct hvd_ucx *ucx = self;
    struct endpoint *endpoint = opened;
    bool is_device = fragment->op != NULL && fragment->op->is_device;
    const ucp_request_param_t params = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_FLAGS |
                        (is_device ? UCP_OP_ATTR_FIELD_MEMORY_TYPE : 0),
        .flags = is_device ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER,
        .cb.send = on_sent,
        .user_data = fragment,
        .memory_type = UCS_MEMORY_TYPE_CUDA,
    };
    ucs_status_ptr_t request;

    fragment->transport = ucx;
    request =
        ucp_am_send_nbx(endpoint->ep, AM_ID, &fragment->header, sizeof(fragment->header),
                        fragment->data, fragment->bytes, &params);
    if (UCS_PTR_IS_PTR(request)) {
        return HVD_INPROGRESS;
    }
    return request == NULL ? 0 : from_ucs(UCS_PTR_STATUS(request));
}

static int fetch_offer(void *self, void *offer, struct hvd_net_op *op)
{
    struct hvd_ucx *ucx = self;
    const ucp_request_param_t params = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_MEMORY_TYPE,
        .cb.recv_am = on_fetched,
        .user_data = op,
        .memory_type = UCS_MEMORY_TYPE_CUDA,
    };
    ucs_status_ptr_t request;

    op->transport = ucx;
    request = ucp_am_recv_data_nbx(ucx->worker, offer, op->data, op->bytes, &params);
    if (UCS_PTR_IS_PTR(request)) {
        return HVD_INPROGRESS;
    }
    return from_ucs(UCS_PTR_STATUS(request));
}

static bool has_cuda(const void *self)
{
    const struct hvd_ucx *ucx = self;
    ucp_context_attr_t found = {.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES};

    return ucp_context_query(ucx->context, &found) == UCS_OK &&
           (found.memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA)) != 0;
}

static int progress_ucx(void *self)
{
    struct hvd_ucx *ucx = self;

    return (int)ucp_worker_progress(ucx->worker);
}

static int ucx_fd(const void *self)
{
    return ((const struct hvd_ucx *)self)->fd;
}

/* Polls once more after arming. A verbs adapter has to signal only what completes after
 * the request for a signal; soft-RoCE (rdma_rxe) does no more than that, and UCX's
 * transports rc_verbs and ud_verbs do not poll after the request. Without this poll, a
 * message that comes between the last poll and the request wakes nobody until UCX's
 * keepalive, up to 20 s later (UCX 1.13.1, 1.18.1: `ucx_perftest -E sleep`). */
static int arm_ucx(void *self)
{
    struct hvd_ucx *ucx = self;
    ucs_status_t status = ucp_worker_arm(ucx->worker);

    if (status == UCS_OK && ucp_worker_progress(ucx->worker) > 0) {
        return HVD_INPROGRESS;
    }
    return status == UCS_ERR_BUSY ? HVD_INPROGRESS : from_ucs(status);
}

static bool is_closed(struct endpoint *endpoint)
{
    if (endpoint->closing != NULL &&
        ucp_request_check_status(endpoint->closing) != UCS_INPROGRESS) {
        ucp_request_free(endpoint->closing);
        endpoint->closing = NULL;
    }
    return endpoint->closing == NULL;
}

static void close_endpoints(struct hvd_ucx *ucx)
{
    int64_t deadline_ms = hvd_clock_ms() + CLOSE_MS;

    for (struct endpoint *endpoint = ucx->endpoints; endpoint != NULL;
         endpoint = endpoint->next) {
        close_endpoint(ucx, endpoint);
    }
    while (ucx->endpoints != NULL) {
        struct endpoint *endpoint = ucx->endpoints;

        while (!is_closed(endpoint) && hvd_clock_ms() < deadline_ms) {
            ucp_worker_progress(ucx->worker);
        }
        ucx->endpoints = endpoint->next;
        free(endpoint);
    }
}

static void destroy_ucx(void *self)
{
    struct hvd_ucx *ucx = self;

    if (ucx == NULL) {
        return;
    }
    if (ucx->worker != NULL) {
        close_endpoints(ucx);
        if (ucx->address != NULL) {
            ucp_worker_release_address(ucx->worker, ucx->address);
        }
        ucp_worker_destroy(ucx->worker);
    }
    if (ucx->context != NULL) {
        ucp_cleanup(ucx->context);
    }
    hvd_ucx_loud();
    free(ucx);
}

HVD_EXPORT struct hvd_ucx_module hvd_ucx_module = {
    .version = HVD_UCX_MODULE_VERSION,
    .transport =
        {
            .open = open_endpoint,
            .close = close_endpoint,
            .send = send_fragment,
            .fetch = fetch_offer,
            .has_cuda = has_cuda,
            .progress = progress_ucx,
            .fd = ucx_fd,
            .arm = arm_ucx,
            .destroy = destroy_ucx,
        },
    .create = create_ucx,
    .address = get_address,
};

__attribute__((constructor)) static void ask_version(void)
{
    unsigned major, minor, release_data;

    ucp_get_version(&major, &minor, &release_data);
    hvd_ucx_module.ucx_version = (int)(major * 10000 + minor * 100 + release_data);
}
