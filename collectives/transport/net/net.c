/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between ranks on different nodes: peers and channels on top of a transport,
 * UCX or TCP. */
#include "collectives/transport/net/net.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/transport/net/net_card.h"
#include "collectives/transport/net/net_key.h"
#include "collectives/transport/net/net_peer.h"
#include "collectives/transport/net/net_seal.h"
#include "collectives/transport/net/net_tcp.h"
#include "collectives/transport/net/rdma.h"
#include "collectives/transport/net/ucx_module.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/log.h"

struct hvd_net {
    enum hvd_net_choice choice; /* HVD_NET on this rank */
    enum hvd_net_security security;
    struct hvd_net_tcp *tcp; /* NULL once UCX is chosen */
    const struct hvd_ucx_module *ucx_module; /* NULL if the module is not loaded */
    /* NULL once TCP is chosen, or if `obstacle` says why UCX is not used */
    struct hvd_ucx *ucx;
    struct hvd_error obstacle;
    bool is_broken; /* UCX should work here but failed; `obstacle` has the error */
    char no_rdma[160]; /* why UCX uses no RDMA adapter; "" if it does */
    /* the transport that all ranks chose; NULL before connect */
    const struct hvd_net_transport *transport;
    void *carried; /* the self argument of the transport's functions */
    void *card; /* this rank's addresses, as other ranks get them */
    size_t card_bytes;
    int rank;
    int size; /* 0 before connect */
    char *host; /* name of this host */
    unsigned char secret[HVD_NET_SECRET_BYTES];
    uint64_t strangers; /* number of messages with a wrong key */
    uint32_t watched; /* the channel that `newcomer` is called for */
    hvd_net_newcomer *newcomer; /* NULL if no channel is watched */
    void *newcomer_context;
    char *addresses; /* addresses of all ranks, concatenated */
    size_t *address_at; /* [size + 1] */
    /* [size]; NULL until the first message to or from that rank */
    struct hvd_net_peer **peers;
    struct hvd_net_pool pool;
    int failed_peer;
    const char *failure;
    struct hvd_net_scope scope; /* `enter` is NULL if no device memory is used */
    bool is_in_scope;
    bool is_closing_due; /* the endpoint of a failed peer has yet to be closed */
    bool is_ending;
};

/* --- the scope of device memory --- */

/* Enters the scope, unless the net is in the scope already. Returns whether the caller
 * must leave the scope. */
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
    int status = net->transport->send(net->carried, peer->endpoint, fragment);

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
    int status = net->transport->fetch(net->carried, offer, op);

    if (has_entered) {
        leave_scope(net);
    }
    return status;
}

/* Creates the peer; returns NULL if memory runs out. */
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

static const struct hvd_net_address *chosen_address(const struct hvd_net *net,
                                                    const struct hvd_net_card *card)
{
    return net->tcp != NULL ? &card->tcp : &card->ucx;
}

static int read_card(const struct hvd_net *net, int rank, struct hvd_net_card *card)
{
    return hvd_net_card_read(net->addresses + net->address_at[rank],
                             net->address_at[rank + 1] - net->address_at[rank], card);
}

/* Starts to open the endpoint. Must not be called from an arrival callback: if an
 * endpoint is opened there, UCX 1.13 moves the connection that it is reading from. */
static void open_peer(struct hvd_net *net, struct hvd_net_peer *peer)
{
    bool has_entered = net->scope.enter != NULL && enter_scope(net);
    struct hvd_net_card card;
    int status = read_card(net, peer->rank, &card);

    if (status == 0) {
        const struct hvd_net_address *address = chosen_address(net, &card);

        status = net->transport->open(net->carried, peer->rank, address->data,
                                      address->bytes, peer, &peer->endpoint);
    }
    if (has_entered) {
        leave_scope(net);
    }
    if (status != 0) {
        fail_peer(peer, status == HVD_ERR_PEER
                            ? "UCX cannot reach it: check " HVD_ENV_UCX_TLS
                              " and " HVD_ENV_UCX_NET_DEVICES
                            : "cannot open an endpoint to it");
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

static int refuse_stranger(struct hvd_net *net)
{
    net->strangers++;
    if (net->strangers == 1) {
        hvd_log(HVD_LOG_WARN, "rank %d on %s dropped a message with a wrong job key",
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
    uint64_t key;

    if (net->is_ending || net->size == 0) {
        return 0;
    }
    if (header == NULL || header->source >= (uint32_t)net->size) {
        return refuse_stranger(net);
    }
    peer = net->peers[header->source];
    key = peer != NULL ? peer->key
                       : hvd_net_key(net->secret, (int)header->source, net->rank);
    if (header->key != key) {
        return refuse_stranger(net);
    }
    if (peer == NULL) {
        peer = add_peer(net, (int)header->source);
    }
    if (peer == NULL) {
        return 0;
    }
    flow = hvd_net_peer_flow(peer, header->channel);
    if (flow == NULL) {
        fail_peer(peer, hvd_status_name(HVD_ERR_NOMEM));
        return 0;
    }
    if (net->newcomer != NULL && header->channel == net->watched &&
        hvd_net_flow_is_unread(flow)) {
        net->newcomer(net->newcomer_context, peer->rank);
    }
    return hvd_net_flow_arrived(flow, arrival);
}

void hvd_net_watch(struct hvd_net *net, uint32_t channel, hvd_net_newcomer *newcomer,
                   void *context)
{
    net->watched = channel;
    net->newcomer = newcomer;
    net->newcomer_context = context;
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

/* Collects the addresses of this rank in every transport. */
static int make_card(struct hvd_net *net, struct hvd_error *err)
{
    struct hvd_net_card card = {.security = net->security,
                                .has_aes = hvd_net_seal_has_aes()};

    hvd_net_tcp_address(net->tcp, &card.tcp.data, &card.tcp.bytes);
    if (net->ucx != NULL) {
        net->ucx_module->address(net->ucx, &card.ucx.data, &card.ucx.bytes);
    }
    return hvd_net_card_make(&card, &net->card, &net->card_bytes) == 0
               ? 0
               : hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
}

static void log_ucx(const char *line)
{
    hvd_log(HVD_LOG_DEBUG, "ucx: %s", line);
}

/* With too little memory that may be locked, UCX 1.13 does not fail: it repeats the
 * registration of its receive buffers for ever. */
static int load_ucx(struct hvd_net *net, const struct hvd_net_handlers *handlers,
                    struct hvd_error *err)
{
    const struct hvd_ucx_settings settings = {
        .has_rdma = !hvd_rdma_is_unusable(net->no_rdma, sizeof(net->no_rdma)),
        .log = log_ucx};
    int status = settings.has_rdma ? hvd_rdma_check_memlock(err) : 0;

    if (status != 0) {
        return status;
    }
    net->ucx_module = hvd_ucx_load(err);
    return net->ucx_module == NULL
               ? HVD_ERR_UNSUPPORTED
               : net->ucx_module->create(handlers, &settings, &net->ucx, err);
}

/* A broken UCX is an error only if the user asked for UCX. */
static int open_ucx(struct hvd_net *net, const struct hvd_net_handlers *handlers,
                    struct hvd_error *err)
{
    int status;

    if (hvd_net_choice_obstacle(net->choice, net->obstacle.text,
                                sizeof(net->obstacle.text))) {
        return 0;
    }
    status = load_ucx(net, handlers, &net->obstacle);
    net->is_broken = status != 0;
    return status != 0 && net->choice == HVD_NET_UCX
               ? hvd_fail(err, status, "%s", net->obstacle.text)
               : 0;
}

static int read_security(struct hvd_net *net, struct hvd_error *err)
{
    int status = hvd_net_choice_security(&net->security, err);

    return status == 0 && net->choice == HVD_NET_UCX &&
                   net->security != HVD_NET_SECURITY_OBJECTS
               ? hvd_fail(err, HVD_ERR_ARG,
                          HVD_ENV_NET_SECURITY
                          "=%s and " HVD_ENV_NET "=ucx exclude each other: UCX neither "
                          "authenticates nor encrypts; use " HVD_ENV_NET "=tcp",
                          hvd_net_choice_security_word(net->security))
               : status;
}

int hvd_net_create(enum hvd_net_choice choice, struct hvd_net **out,
                   struct hvd_error *err)
{
    struct hvd_net *net = calloc(1, sizeof(*net));
    const struct hvd_net_handlers handlers = {
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
    net->choice = choice;
    status = read_security(net, err);
    if (status != 0) {
        goto destroy;
    }
    status = hvd_net_tcp_create(&handlers, &net->tcp, err);
    if (status != 0) {
        goto destroy;
    }
    status = open_ucx(net, &handlers, err);
    if (status != 0) {
        goto destroy;
    }
    status = make_card(net, err);
    if (status != 0) {
        goto destroy;
    }
    *out = net;
    return 0;
destroy:
    hvd_net_destroy(net);
    return status;
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

/* Counts the ranks that have UCX, and sets *without to the first rank that lacks it, or
 * to -1. Returns the count, or a failure if a card cannot be read. */
static int count_ucx(const struct hvd_net *net, int size, int *without)
{
    int count = 0;

    *without = -1;
    for (int i = 0; i < size; i++) {
        struct hvd_net_card card;
        int status = read_card(net, i, &card);

        if (status != 0) {
            return status;
        }
        if (card.ucx.bytes > 0) {
            count++;
        } else if (*without < 0) {
            *without = i;
        }
    }
    return count;
}

static void use_ucx(struct hvd_net *net)
{
    hvd_net_tcp_transport.destroy(net->tcp);
    net->tcp = NULL;
    net->transport = &net->ucx_module->transport;
    net->carried = net->ucx;
}

/* Determines the protection that all ranks ask for; fails if they ask for different
 * ones. */
static int choose_protection(const struct hvd_net *net, const struct hvd_net_job *job,
                             enum hvd_net_protection *protection, struct hvd_error *err)
{
    static const char *const names[] = {
        [HVD_NET_PROTECT_OBJECTS] =
            "everything except floating-point tensors is authenticated",
        [HVD_NET_PROTECT_MESSAGES] = "authenticated",
        [HVD_NET_ENCRYPT_AES] = "encrypted by AES-256-GCM",
        [HVD_NET_ENCRYPT_CHACHA] = "encrypted by XChaCha20-Poly1305",
    };
    bool has_aes = true;

    for (int i = 0; i < job->size; i++) {
        struct hvd_net_card card;
        int status = read_card(net, i, &card);

        if (status != 0 || card.security > HVD_NET_SECURITY_ENCRYPT) {
            return hvd_fail(
                err, HVD_ERR_MISMATCH,
                "cannot read the network address of rank %d: install the same "
                "hvd on all nodes",
                i);
        }
        if (card.security != net->security) {
            return hvd_fail(
                err, HVD_ERR_MISMATCH,
                HVD_ENV_NET_SECURITY "=%s on rank %d, but %s on rank %d: set the "
                                     "same value on all ranks",
                hvd_net_choice_security_word(net->security), job->rank,
                hvd_net_choice_security_word((enum hvd_net_security)card.security), i);
        }
        has_aes = has_aes && card.has_aes;
    }
    *protection = net->security != HVD_NET_SECURITY_ENCRYPT
                      ? (enum hvd_net_protection)net->security
                  : has_aes ? HVD_NET_ENCRYPT_AES
                            : HVD_NET_ENCRYPT_CHACHA;
    hvd_log(job->rank == 0 ? HVD_LOG_INFO : HVD_LOG_DEBUG, "between nodes over TCP: %s",
            names[*protection]);
    return 0;
}

_Static_assert((int)HVD_NET_SECURITY_OBJECTS == HVD_NET_PROTECT_OBJECTS &&
                   (int)HVD_NET_SECURITY_MESSAGES == HVD_NET_PROTECT_MESSAGES,
               "all but a cipher is decided by the user");

static int use_tcp(struct hvd_net *net, const struct hvd_net_job *job,
                   struct hvd_error *err)
{
    struct hvd_handshake_party self = {job->rank, job->size, job->secret, 0};
    enum hvd_net_protection protection = HVD_NET_PROTECT_OBJECTS;
    int status = choose_protection(net, job, &protection, err);

    if (status != 0) {
        return status;
    }
    self.protection = protection;
    if (net->ucx != NULL) {
        net->ucx_module->transport.destroy(net->ucx);
        net->ucx = NULL;
    }
    net->transport = &hvd_net_tcp_transport;
    net->carried = net->tcp;
    return hvd_net_tcp_join(net->tcp, &self) == 0
               ? 0
               : hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
}

/* UCX checks no key before it accepts a connection over TCP and writes what arrives. */
static void warn_of_open_ports(const struct hvd_net *net)
{
    hvd_log(HVD_LOG_WARN,
            HVD_ENV_NET
            "=ucx without RDMA (%s): UCX listens on TCP ports, and anybody who "
            "reaches them can kill a rank by one connection and write into "
            "its memory: set " HVD_ENV_NET "=tcp or " HVD_ENV_NET "=auto",
            net->no_rdma);
}

static int choose_transport(struct hvd_net *net, const struct hvd_net_job *job,
                            struct hvd_error *err)
{
    int without;
    int count = count_ucx(net, job->size, &without);

    if (count < 0) {
        return hvd_fail(err, count, "cannot read the network addresses of the job: %s",
                        hvd_status_name(count));
    }
    if (count < job->size && net->choice == HVD_NET_UCX) {
        return hvd_fail(err, HVD_ERR_MISMATCH,
                        HVD_ENV_NET "=ucx on rank %d, but rank %d does not use UCX: "
                                    "set " HVD_ENV_NET "=ucx on all ranks, and that rank "
                                    "reports why",
                        job->rank, without);
    }
    if (count == job->size) {
        use_ucx(net);
        hvd_log(job->rank == 0 ? HVD_LOG_INFO : HVD_LOG_DEBUG, "between nodes: UCX");
        if (job->rank == 0 && net->choice == HVD_NET_UCX && net->no_rdma[0] != '\0') {
            warn_of_open_ports(net);
        }
        return 0;
    }
    if (without == job->rank) {
        hvd_log(count > 0 || net->is_broken ? HVD_LOG_WARN : HVD_LOG_INFO,
                "between nodes: TCP, because rank %d on %s does not use UCX: %s",
                job->rank, job->host, net->obstacle.text);
    }
    return use_tcp(net, job, err);
}

int hvd_net_connect(struct hvd_net *net, const struct hvd_net_job *job,
                    struct hvd_error *err)
{
    int status;

    assert(job->size > 0);
    net->peers = calloc((size_t)job->size, sizeof(struct hvd_net_peer *));
    net->host = strdup(job->host);
    if (copy_addresses(net, job) != 0 || net->peers == NULL || net->host == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory for %d addresses", job->size);
    }
    status = choose_transport(net, job, err);
    if (status != 0) {
        return status;
    }
    memcpy(net->secret, job->secret, sizeof(net->secret));
    net->rank = job->rank;
    net->size = job->size;
    return 0;
}

bool hvd_net_is_ucx(const struct hvd_net *net)
{
    return net->ucx != NULL && net->carried == net->ucx;
}

bool hvd_net_has_cuda(const struct hvd_net *net)
{
    return net->ucx != NULL && net->ucx_module->transport.has_cuda(net->ucx);
}

int hvd_net_ucx_version(const struct hvd_net *net)
{
    return net->ucx != NULL ? net->ucx_module->ucx_version : 0;
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
            net->transport->close(net->carried, peer->endpoint);
            peer->endpoint = NULL;
        }
    }
}

static int move_on(struct hvd_net *net)
{
    bool has_entered = net->scope.enter != NULL && enter_scope(net);
    int count = net->transport->progress(net->carried);

    if (net->is_closing_due) {
        close_failed(net);
        count++;
    }
    if (has_entered) {
        leave_scope(net);
    }
    return count;
}

int hvd_net_progress(struct hvd_net *net, int *failed_peer)
{
    int count = net->transport != NULL ? move_on(net) : 0;

    if (failed_peer != NULL) {
        *failed_peer = net->failed_peer;
    }
    return count;
}

int hvd_net_fd(const struct hvd_net *net)
{
    return net->transport != NULL ? net->transport->fd(net->carried) : -1;
}

int hvd_net_arm(struct hvd_net *net)
{
    bool has_entered = net->scope.enter != NULL && enter_scope(net);
    int status = net->transport != NULL ? net->transport->arm(net->carried) : 0;

    if (has_entered) {
        leave_scope(net);
    }
    return net->is_closing_due ? HVD_INPROGRESS : status;
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
    if (net->ucx != NULL) {
        net->ucx_module->transport.destroy(net->ucx);
    }
    hvd_net_tcp_transport.destroy(net->tcp);
    if (has_entered) {
        leave_scope(net);
    }
    hvd_net_pool_finish(&net->pool);
    if (net->strangers > 1) {
        hvd_log(HVD_LOG_WARN,
                "rank %d on %s dropped %" PRIu64 " messages with a wrong job key",
                net->rank, net->host, net->strangers);
    }
    free(net->card);
    free(net->host);
    free(net->peers);
    free(net->address_at);
    free(net->addresses);
    free(net);
}
