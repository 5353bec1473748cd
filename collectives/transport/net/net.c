/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between ranks on different nodes: peers and channels on top of UCX. */
#include "collectives/transport/net/net.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/transport/net/net_card.h"
#include "collectives/transport/net/net_key.h"
#include "collectives/transport/net/net_peer.h"
#include "collectives/transport/net/net_ucx.h"
#include "collectives/transport/net/ucx_quiet.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/log.h"

struct hvd_net {
    struct hvd_ucx *ucx;
    struct hvd_net_host_addresses hosts; /* own */
    void *card; /* what the others get */
    size_t card_bytes;
    int rank;
    int size; /* 0 before connect */
    char *host; /* this one */
    unsigned char secret[HVD_NET_SECRET_BYTES];
    uint64_t strangers; /* messages without the key */
    char *addresses; /* of all ranks, one behind the other */
    size_t *address_at; /* [size + 1] */
    struct hvd_net_peer **peers; /* [size], NULL until first use */
    struct hvd_net_pool pool;
    int failed_peer;
    const char *failure;
    struct hvd_net_scope scope; /* enter NULL: none */
    bool is_in_scope;
    bool is_closing_due; /* a failed peer still has its endpoint */
    bool is_ending;
    bool is_filtered; /* the kernel keeps hosts away that are not the job's */
};

/* --- the scope of device memory --- */

/* Returns whether it is to be left. */
static bool enter_scope(struct hvd_net *net)
{
    if (!net->is_in_scope) {
        net->is_in_scope = net->scope.enter(net->scope.context);
        return net->is_in_scope;
    }
    return false;
}

static void leave_scope(struct hvd_net *net)
{
    net->scope.leave(net->scope.context);
    net->is_in_scope = false;
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

static void end_peer(void *context, int status)
{
    fail_peer(context, status == HVD_ERR_MISMATCH
                           ? "a message does not have the length that was expected"
                           : hvd_status_name(status));
}

static int send_fragment(void *context, struct hvd_net_fragment *fragment)
{
    struct hvd_net_peer *peer = context;
    struct hvd_net *net = peer->net;
    bool has_entered = net->scope.enter != NULL && enter_scope(net);
    int status = hvd_ucx_send(net->ucx, peer->endpoint, fragment);

    if (has_entered) {
        leave_scope(net);
    }
    return status;
}

static int fetch_offer(void *context, void *offer, struct hvd_net_op *op)
{
    struct hvd_net_peer *peer = context;
    struct hvd_net *net = peer->net;
    bool has_entered = net->scope.enter != NULL && enter_scope(net);
    int status = hvd_ucx_fetch(net->ucx, offer, op);

    if (has_entered) {
        leave_scope(net);
    }
    return status;
}

/* NULL when memory is out. */
static struct hvd_net_peer *add_peer(struct hvd_net *net, int rank)
{
    const struct hvd_net_flow_link link = {
        .send = send_fragment,
        .fetch = fetch_offer,
        .fail = end_peer,
        .key = hvd_net_key(net->secret, net->rank, rank),
        .source = (uint32_t)net->rank,
        .pool = &net->pool,
    };

    hvd_net_peer_create(net, &link, rank, hvd_net_key(net->secret, rank, net->rank),
                        &net->peers[rank]);
    return net->peers[rank];
}

/* Begins to open its endpoint. Not while UCX hands over what has come: opening one
 * then makes UCX 1.13 move the connection from which it reads. */
static void open_peer(struct hvd_net *net, struct hvd_net_peer *peer)
{
    bool has_entered = net->scope.enter != NULL && enter_scope(net);
    const char *card = net->addresses + net->address_at[peer->rank];
    struct hvd_net_host_addresses ignored;
    const void *address;
    int status = hvd_net_card_read(
        card, net->address_at[peer->rank + 1] - net->address_at[peer->rank], &ignored,
        &address);

    if (status == 0) {
        status = hvd_ucx_open(net->ucx, address, peer, &peer->endpoint);
    }

    if (has_entered) {
        leave_scope(net);
    }
    if (status != 0) {
        fail_peer(peer, status == HVD_ERR_PEER
                            ? "UCX has no way to it: check " HVD_ENV_UCX_TLS
                              " and " HVD_ENV_UCX_NET_DEVICES
                            : "UCX cannot open an endpoint to it");
    }
}

struct hvd_net_flow *hvd_net_flow_get(struct hvd_net *net, int rank, uint32_t channel)
{
    struct hvd_net_peer *peer = net->peers[rank];

    if (peer == NULL) {
        peer = add_peer(net, rank);
    }
    if (peer != NULL && peer->endpoint == NULL && peer->status == 0) {
        open_peer(net, peer);
    }
    return peer != NULL ? hvd_net_peer_flow(peer, channel) : NULL;
}

static int refuse(struct hvd_net *net)
{
    net->strangers++;
    if (net->strangers == 1) {
        hvd_log(HVD_LOG_WARN,
                "a message that is not of this job reached rank %d on %s: dropped",
                net->rank, net->host);
    }
    return 0;
}

static int on_arrival(void *context, const struct hvd_net_flow_arrival *arrival)
{
    struct hvd_net *net = context;
    const struct hvd_net_header *header = arrival->header;
    struct hvd_net_peer *peer;
    struct hvd_net_flow *flow;

    if (net->is_ending || net->size == 0) {
        return 0;
    }
    if (header == NULL || header->source >= (uint32_t)net->size) {
        return refuse(net);
    }
    peer = net->peers[header->source];
    if (peer == NULL) {
        peer = add_peer(net, (int)header->source);
    }
    if (peer == NULL) {
        return 0;
    }
    if (header->key != peer->key) {
        return refuse(net);
    }
    flow = hvd_net_peer_flow(peer, header->channel);
    if (flow == NULL) {
        fail_peer(peer, hvd_status_name(HVD_ERR_NOMEM));
        return 0;
    }
    return hvd_net_flow_arrived(flow, arrival);
}

static void on_sent(void *context, struct hvd_net_fragment *fragment, int status)
{
    struct hvd_net *net = context;

    if (net->is_ending) {
        hvd_net_pool_put(&net->pool, fragment);
        return;
    }
    hvd_net_flow_sent(fragment, status);
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

/* Closes UCX's ports to all hosts but these, if the kernel can. */
static int let_in(struct hvd_net *net, struct hvd_net_host_addresses *hosts)
{
    const struct hvd_net_listeners *listeners = hvd_ucx_listeners(net->ucx);
    const char *word = getenv(HVD_ENV_NET_FILTER);
    struct sock_fprog filter;
    int status;

    net->is_filtered = word == NULL || strcmp(word, "0") != 0;
    if (!net->is_filtered) {
        return 0;
    }
    status = hvd_net_filter_make(hosts, &filter);
    if (status != 0) {
        return status;
    }
    for (int i = 0; i < listeners->count; i++) {
        if (!hvd_net_filter_attach(&filter, listeners->fds[i])) {
            hvd_log(HVD_LOG_INFO, "UCX's port is open to all hosts: %m");
            net->is_filtered = false;
        }
    }
    free(filter.filter);
    return 0;
}

/* UCX listens from the start of its worker on, and the filter can only come after that: who was
 * connected by then is a stranger, since no other rank knew the ports. UCX has accepted them, and
 * reads what they say as soon as it makes progress, which begins after this. */
static void send_strangers_away(const struct hvd_net *net)
{
    if (net->is_filtered) {
        hvd_net_listeners_clear(hvd_ucx_listeners(net->ucx));
    }
}

static int make_card(struct hvd_net *net, struct hvd_error *err)
{
    const void *address;
    size_t bytes;
    int status = hvd_net_host_addresses_find(&net->hosts);

    if (status != 0) {
        return hvd_fail(err, status, "cannot list the addresses of this host: %m");
    }
    hvd_ucx_address(net->ucx, &address, &bytes);
    status = hvd_net_card_make(&net->hosts, address, bytes, &net->card, &net->card_bytes);
    return status == 0 ? 0 : hvd_fail(err, status, "out of memory");
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
    if (status == 0 && let_in(net, &(struct hvd_net_host_addresses){0}) != 0) {
        status = hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    if (status == 0) {
        status = make_card(net, err);
    }
    if (status != 0) {
        hvd_net_destroy(net);
        return status;
    }
    *out = net;
    return 0;
}

void hvd_net_address(const struct hvd_net *net, const void **address, size_t *bytes)
{
    *address = net->card;
    *bytes = net->card_bytes;
}

static int copy_addresses(struct hvd_net *net, const struct hvd_net_job *job)
{
    size_t total = 0;

    for (int i = 0; i < job->size; i++) {
        total += job->bytes[i];
    }
    net->addresses = malloc(total + 1);
    net->address_at = calloc((size_t)job->size + 1, sizeof(*net->address_at));
    if (net->addresses == NULL || net->address_at == NULL) {
        return HVD_ERR_NOMEM;
    }
    total = 0;
    for (int i = 0; i < job->size; i++) {
        memcpy(net->addresses + net->address_at[i], job->addresses[i], job->bytes[i]);
        total += job->bytes[i];
        net->address_at[i + 1] = total;
    }
    return 0;
}

/* Appends the addresses of all other nodes. */
static int list_others(const struct hvd_net_job *job,
                       const struct hvd_net_host_addresses *own,
                       struct hvd_net_host_addresses *others)
{
    int status = 0;

    for (int i = 0; i < job->size && status == 0; i++) {
        struct hvd_net_host_addresses hosts;
        const void *ignored;

        if (job->node[i] != job->node[job->rank]) {
            status =
                hvd_net_card_read(job->addresses[i], job->bytes[i], &hosts, &ignored);
            status =
                status != 0 ? status : hvd_net_host_addresses_add(others, own, &hosts);
        }
    }
    return status;
}

int hvd_net_connect(struct hvd_net *net, const struct hvd_net_job *job,
                    struct hvd_error *err)
{
    struct hvd_net_host_addresses others = {0};
    int status;

    assert(job->size > 0);
    net->peers = calloc((size_t)job->size, sizeof(struct hvd_net_peer *));
    net->host = strdup(job->host);
    if (copy_addresses(net, job) != 0 || net->peers == NULL || net->host == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory for %d addresses", job->size);
    }
    status = list_others(job, &net->hosts, &others);
    send_strangers_away(net);
    status = status != 0 ? status : let_in(net, &others);
    hvd_net_host_addresses_finish(&others);
    if (status != 0) {
        return hvd_fail(err, status, "cannot read the network addresses of the job: %s",
                        hvd_status_name(status));
    }
    memcpy(net->secret, job->secret, sizeof(net->secret));
    net->rank = job->rank;
    net->size = job->size;
    return 0;
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

int hvd_net_progress(struct hvd_net *net, int *failed_peer)
{
    bool has_entered = net->scope.enter != NULL && enter_scope(net);
    int count = hvd_ucx_progress(net->ucx);

    if (net->is_closing_due) {
        close_failed(net);
        count++;
    }
    if (has_entered) {
        leave_scope(net);
    }
    if (failed_peer != NULL) {
        *failed_peer = net->failed_peer;
    }
    return count;
}

int hvd_net_fd(const struct hvd_net *net)
{
    return hvd_ucx_fd(net->ucx);
}

int hvd_net_arm(struct hvd_net *net)
{
    bool has_entered = net->scope.enter != NULL && enter_scope(net);
    int status = net->is_closing_due ? HVD_INPROGRESS : hvd_ucx_arm(net->ucx);

    if (has_entered) {
        leave_scope(net);
    }
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
    has_entered = net->scope.enter != NULL && enter_scope(net);
    for (int i = 0; i < net->size; i++) {
        hvd_net_peer_destroy(net->peers[i]);
    }
    hvd_ucx_destroy(net->ucx);
    if (has_entered) {
        leave_scope(net);
    }
    hvd_net_pool_finish(&net->pool);
    if (net->strangers > 1) {
        hvd_log(HVD_LOG_WARN,
                "%" PRIu64 " messages that are not of this job reached rank %d on %s",
                net->strangers, net->rank, net->host);
    }
    hvd_net_host_addresses_finish(&net->hosts);
    free(net->card);
    free(net->host);
    free(net->peers);
    free(net->address_at);
    free(net->addresses);
    free(net);
}
