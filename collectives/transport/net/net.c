/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between ranks on different nodes: peers and channels on top of UCX. */
#include "collectives/transport/net/net.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/transport/net/net_peer.h"
#include "collectives/transport/net/net_ucx.h"
#include "collectives/transport/net/ucx_quiet.h"
#include "gpu_binding/base/env.h"

struct hvd_net {
    struct hvd_ucx *ucx;
    int rank;
    int size; /* 0 before connect */
    char *addresses; /* of all ranks, one behind the other */
    size_t *address_at; /* [size] */
    struct hvd_net_peer **peers; /* [size], NULL until first use */
    struct hvd_net_pool pool;
    int failed_peer;
    const char *failure;
    struct hvd_net_scope scope; /* enter NULL: none */
    bool is_closing_due; /* a failed peer still has its endpoint */
    bool is_ending;
};

/* --- the scope of device memory --- */

/* Returns whether it is to be left. */
static bool enter_scope(const struct hvd_net *net)
{
    return net->scope.enter != NULL && net->scope.enter(net->scope.context);
}

static void leave_scope(const struct hvd_net *net, bool has_entered)
{
    if (has_entered) {
        net->scope.leave(net->scope.context);
    }
}

/* --- peers --- */

static void fail_peer(struct hvd_net_peer *peer, const char *reason)
{
    struct hvd_net *net = peer->net;

    if (peer->status != 0) {
        return;
    }
    if (net->failed_peer < 0) {
        net->failed_peer = peer->rank;
        net->failure = reason;
    }
    hvd_net_peer_fail(peer, HVD_ERR_PEER);
    net->is_closing_due = true;
}

static void check(struct hvd_net_peer *peer, int status)
{
    if (status == HVD_ERR_MISMATCH) {
        fail_peer(peer, "a message does not have the length that was expected");
    } else if (status < 0) {
        fail_peer(peer, hvd_status_name(status));
    }
}

static int send_fragment(void *context, struct hvd_net_fragment *fragment)
{
    struct hvd_net_peer *peer = context;

    return hvd_ucx_send(peer->net->ucx, peer->endpoint, fragment);
}

static int fetch_offer(void *context, void *offer, struct hvd_net_op *op)
{
    struct hvd_net_peer *peer = context;

    return hvd_ucx_fetch(peer->net->ucx, offer, op);
}

/* NULL when memory is out. */
static struct hvd_net_peer *peer_of(struct hvd_net *net, int rank)
{
    if (net->peers[rank] == NULL) {
        hvd_net_peer_create(net, rank, &net->peers[rank]);
    }
    return net->peers[rank];
}

/* Begins to open its endpoint. Not while UCX hands over what has come: opening one
 * then makes UCX 1.13 move the connection from which it reads. */
static void open_peer(struct hvd_net *net, struct hvd_net_peer *peer)
{
    int status = hvd_ucx_open(net->ucx, net->addresses + net->address_at[peer->rank],
                              peer, &peer->endpoint);

    if (status != 0) {
        fail_peer(peer, status == HVD_ERR_PEER
                            ? "UCX has no way to it: check " HVD_ENV_UCX_TLS
                              " and " HVD_ENV_UCX_NET_DEVICES
                            : "UCX cannot open an endpoint to it");
    }
}

/* The flow of a channel of a peer, new at first use. NULL when memory is out. */
static struct hvd_flow *flow_of(struct hvd_net *net, struct hvd_net_peer *peer,
                                uint32_t channel)
{
    const struct hvd_flow_link link = {
        .send = send_fragment,
        .fetch = fetch_offer,
        .peer = peer,
        .source = (uint32_t)net->rank,
        .pool = &net->pool,
    };
    struct hvd_flow *flow = hvd_net_peer_find(peer, channel);

    if (flow == NULL) {
        flow = hvd_net_peer_add(peer, &link, channel);
    }
    if (flow != NULL && peer->status != 0) {
        hvd_flow_fail(flow, peer->status);
    }
    return flow;
}

static int on_arrival(void *context, const struct hvd_flow_arrival *arrival)
{
    struct hvd_net *net = context;
    uint32_t source = arrival->header->source;
    struct hvd_net_peer *peer;
    struct hvd_flow *flow;
    int status;

    if (net->is_ending || source >= (uint32_t)net->size) {
        return 0;
    }
    peer = peer_of(net, (int)source);
    if (peer == NULL) {
        return 0;
    }
    flow = flow_of(net, peer, arrival->header->channel);
    status = flow != NULL ? hvd_flow_arrived(flow, arrival) : HVD_ERR_NOMEM;
    check(peer, status);
    return status;
}

static void on_sent(void *context, struct hvd_net_fragment *fragment, int status)
{
    struct hvd_net *net = context;

    if (net->is_ending) {
        hvd_net_pool_put(&net->pool, fragment);
        return;
    }
    hvd_flow_sent(fragment, status);
}

static void on_fetched(void *context, struct hvd_net_op *op, int status)
{
    const struct hvd_net *net = context;

    if (!net->is_ending) {
        op->status = status;
    }
}

static void on_failure(void *context, void *peer, const char *reason)
{
    struct hvd_net *net = context;

    if (!net->is_ending) {
        fail_peer(peer, reason);
    }
}

void hvd_net_behave(void)
{
    hvd_ucx_restore_signals();
}

int hvd_net_create(struct hvd_net **out, struct hvd_error *err)
{
    struct hvd_net *net = calloc(1, sizeof(*net));
    const struct hvd_ucx_handlers handlers = {
        .context = net,
        .arrived = on_arrival,
        .sent = on_sent,
        .fetched = on_fetched,
        .failed = on_failure,
    };
    int status;

    if (net == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    net->failed_peer = -1;
    status = hvd_ucx_create(&handlers, &net->ucx, err);
    if (status != 0) {
        free(net);
        return status;
    }
    *out = net;
    return 0;
}

void hvd_net_address(const struct hvd_net *net, const void **address, size_t *bytes)
{
    hvd_ucx_address(net->ucx, address, bytes);
}

int hvd_net_connect(struct hvd_net *net, int rank, int size, const void *const *addresses,
                    const size_t *bytes, struct hvd_error *err)
{
    size_t total = 0;

    assert(size > 0);
    for (int i = 0; i < size; i++) {
        total += bytes[i];
    }
    net->addresses = malloc(total + 1);
    net->address_at = calloc((size_t)size, sizeof(*net->address_at));
    net->peers = calloc((size_t)size, sizeof(struct hvd_net_peer *));
    if (net->addresses == NULL || net->address_at == NULL || net->peers == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory for %d addresses", size);
    }
    total = 0;
    for (int i = 0; i < size; i++) {
        memcpy(net->addresses + total, addresses[i], bytes[i]);
        net->address_at[i] = total;
        total += bytes[i];
    }
    net->rank = rank;
    net->size = size;
    return 0;
}

static void begin(struct hvd_net *net, struct hvd_net_op *op,
                  int (*start)(struct hvd_flow *flow, struct hvd_net_op *op))
{
    struct hvd_net_peer *peer = peer_of(net, op->peer);
    bool has_entered = enter_scope(net);
    struct hvd_flow *flow;

    if (peer != NULL && peer->endpoint == NULL && peer->status == 0) {
        open_peer(net, peer);
    }
    flow = peer != NULL ? flow_of(net, peer, op->channel) : NULL;
    if (flow == NULL) {
        op->status = HVD_ERR_NOMEM;
    } else {
        check(peer, start(flow, op));
    }
    leave_scope(net, has_entered);
}

void hvd_net_send(struct hvd_net *net, int peer, uint32_t channel, const void *data,
                  size_t bytes, struct hvd_net_op *op)
{
    *op = (struct hvd_net_op){.status = HVD_INPROGRESS,
                              .peer = peer,
                              .channel = channel,
                              .data = (char *)(uintptr_t)data,
                              .bytes = bytes};
    begin(net, op, hvd_flow_send);
}

void hvd_net_recv(struct hvd_net *net, int peer, uint32_t channel, void *data,
                  size_t bytes, struct hvd_net_op *op)
{
    *op = (struct hvd_net_op){.status = HVD_INPROGRESS,
                              .peer = peer,
                              .channel = channel,
                              .data = data,
                              .bytes = bytes};
    begin(net, op, hvd_flow_recv);
}

void hvd_net_recv_by(struct hvd_net *net, int peer, uint32_t channel, hvd_net_take *take,
                     size_t bytes, struct hvd_net_op *op)
{
    *op = (struct hvd_net_op){.status = HVD_INPROGRESS,
                              .peer = peer,
                              .channel = channel,
                              .take = take,
                              .bytes = bytes};
    begin(net, op, hvd_flow_recv);
}

void hvd_net_send_device(struct hvd_net *net, int peer, uint32_t channel,
                         const void *data, size_t bytes, struct hvd_net_op *op)
{
    *op = (struct hvd_net_op){.status = HVD_INPROGRESS,
                              .peer = peer,
                              .channel = channel,
                              .data = (char *)(uintptr_t)data,
                              .is_device = true,
                              .bytes = bytes};
    begin(net, op, hvd_flow_send);
}

void hvd_net_recv_device(struct hvd_net *net, int peer, uint32_t channel, void *data,
                         size_t bytes, struct hvd_net_op *op)
{
    *op = (struct hvd_net_op){.status = HVD_INPROGRESS,
                              .peer = peer,
                              .channel = channel,
                              .data = data,
                              .is_device = true,
                              .bytes = bytes};
    begin(net, op, hvd_flow_recv);
}

bool hvd_net_has_cuda(const struct hvd_net *net)
{
    return hvd_ucx_has_cuda(net->ucx);
}

int hvd_net_version(void)
{
    return hvd_ucx_version();
}

void hvd_net_use_scope(struct hvd_net *net, const struct hvd_net_scope *scope)
{
    net->scope = *scope;
}

static void close_failed(struct hvd_net *net)
{
    net->is_closing_due = false;
    for (int i = 0; i < net->size; i++) {
        struct hvd_net_peer *peer = net->peers[i];

        if (peer != NULL && peer->status != 0 && peer->endpoint != NULL) {
            hvd_ucx_close(net->ucx, peer->endpoint);
            peer->endpoint = NULL;
        }
    }
}

int hvd_net_progress(struct hvd_net *net)
{
    bool has_entered = enter_scope(net);
    int count = hvd_ucx_progress(net->ucx);

    if (net->is_closing_due) {
        close_failed(net);
        count++;
    }
    leave_scope(net, has_entered);
    return count;
}

int hvd_net_fd(const struct hvd_net *net)
{
    return hvd_ucx_fd(net->ucx);
}

int hvd_net_arm(struct hvd_net *net)
{
    bool has_entered = enter_scope(net);
    int status = net->is_closing_due ? HVD_INPROGRESS : hvd_ucx_arm(net->ucx);

    leave_scope(net, has_entered);
    return status;
}

bool hvd_net_is_sending(const struct hvd_net *net)
{
    return net->pool.taken > 0;
}

int hvd_net_failed_peer(const struct hvd_net *net, const char **reason)
{
    if (reason != NULL) {
        *reason = net->failed_peer >= 0 ? net->failure : NULL;
    }
    return net->failed_peer;
}

void hvd_net_destroy(struct hvd_net *net)
{
    bool has_entered;

    if (net == NULL) {
        return;
    }
    net->is_ending = true;
    has_entered = enter_scope(net);
    for (int i = 0; i < net->size; i++) {
        hvd_net_peer_destroy(net->peers[i]);
    }
    hvd_ucx_destroy(net->ucx);
    leave_scope(net, has_entered);
    hvd_net_pool_finish(&net->pool);
    free(net->peers);
    free(net->address_at);
    free(net->addresses);
    free(net);
}
