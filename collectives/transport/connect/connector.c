/* SPDX-License-Identifier: Apache-2.0 */
/* The connecting side of a connection. */
#include "collectives/transport/connect/connector.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/transport/connect/connect_protocol.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/fork_close.h"

/* Time for one address: an unreachable address must not hold up the next one for long,
 * but a lost packet is sent again only after a second. So the limit starts low and
 * doubles with each round, up to the maximum. */
#define CONNECT_MS 500
#define CONNECT_MAX_MS 8000
/* Time limit for an answer. The parent's kernel accepts the connection at once, but the
 * parent answers only once its own start has come this far. */
#define ANSWER_MS 5000
/* Pause between two rounds through the addresses. */
#define PAUSE_MS 50

enum state {
    STATE_PAUSE,
    STATE_CONNECTING,
    STATE_HELLO_SENT,
    STATE_PROOF_SENT,
    STATE_DONE,
};

struct hvd_connector {
    struct hvd_handshake_party self;
    struct hvd_connector_target parent;
    struct hvd_connect_card card;
    enum state state;
    int64_t deadline_ms;
    int index; /* index of the address being tried */
    int connect_ms;
    int fd; /* -1 once `link` has taken it over */
    struct hvd_link *link;
    struct hvd_handshake handshake;
    int attempts; /* see hvd_connector_attempts */
    bool is_refused; /* a wrong answer arrived; `failure` describes it */
    char failure[256];
};

int hvd_connector_create(const struct hvd_handshake_party *self,
                         const struct hvd_connector_target *parent,
                         struct hvd_connector **out)
{
    struct hvd_connector *connector = calloc(1, sizeof(*connector));

    if (connector == NULL) {
        return HVD_ERR_NOMEM;
    }
    connector->self = *self;
    connector->parent = *parent;
    connector->card = *parent->card;
    connector->parent.card = NULL;
    connector->connect_ms = CONNECT_MS;
    connector->fd = -1;
    *out = connector;
    return 0;
}

void hvd_connector_destroy(struct hvd_connector *connector)
{
    if (connector == NULL) {
        return;
    }
    hvd_fork_close_now(connector->fd);
    hvd_link_destroy(connector->link);
    free(connector);
}

const char *hvd_connector_failure(const struct hvd_connector *connector)
{
    return connector->failure;
}

int hvd_connector_attempts(const struct hvd_connector *connector)
{
    return connector->attempts;
}

bool hvd_connector_is_waiting(const struct hvd_connector *connector)
{
    return !connector->is_refused &&
           (connector->state == STATE_HELLO_SENT || connector->state == STATE_PROOF_SENT);
}

void hvd_connector_poll(const struct hvd_connector *connector, struct pollfd *fd,
                        int64_t *deadline_ms)
{
    *fd = (struct pollfd){.fd = -1};
    if (connector->state == STATE_DONE) {
        return;
    }
    if (connector->state == STATE_CONNECTING) {
        *fd = (struct pollfd){.fd = connector->fd, .events = POLLOUT};
    } else if (connector->link != NULL) {
        *fd = (struct pollfd){.fd = hvd_link_fd(connector->link), .events = POLLIN};
        fd->events |= hvd_link_is_pending(connector->link) ? POLLOUT : 0;
    }
    if (connector->deadline_ms < *deadline_ms) {
        *deadline_ms = connector->deadline_ms;
    }
}

static void enter_state(struct hvd_connector *connector, enum state state,
                        int64_t deadline_ms)
{
    connector->state = state;
    connector->deadline_ms = deadline_ms;
}

/* Gives up this address and goes on to the next, after a pause if it was the last. */
static void fail_address(struct hvd_connector *connector, const char *why, int64_t now_ms)
{
    const struct hvd_connect_card *card = &connector->card;
    char where[64] = "its unix socket";
    bool is_local = connector->parent.is_local;
    int addresses = is_local ? 1 : card->count;
    int64_t pause_ms = 0;

    if (!is_local && addresses > 0) {
        hvd_ip_print(&card->addresses[connector->index], card->port, where);
    }
    if (!is_local && addresses == 0) {
        snprintf(connector->failure, sizeof(connector->failure), "%s", why);
    } else if (!connector->is_refused) {
        snprintf(connector->failure, sizeof(connector->failure), "%s: %s", where, why);
    }
    hvd_fork_close_now(connector->fd);
    connector->fd = -1;
    hvd_link_destroy(connector->link);
    connector->link = NULL;
    connector->attempts++;
    if (++connector->index >= addresses) {
        connector->index = 0;
        connector->connect_ms *= 2;
        if (connector->connect_ms > CONNECT_MAX_MS) {
            connector->connect_ms = CONNECT_MAX_MS;
        }
        pause_ms = PAUSE_MS;
    }
    enter_state(connector, STATE_PAUSE, now_ms + pause_ms);
}

/* Like fail_address, for a wrong answer: its text is kept, because it explains more than
 * the silence of a later attempt. */
static void fail_with_answer(struct hvd_connector *connector, const char *why,
                             int64_t now_ms)
{
    connector->is_refused = false;
    fail_address(connector, why, now_ms);
    connector->is_refused = true;
}

static void begin_address(struct hvd_connector *connector, int64_t now_ms)
{
    const struct hvd_connect_card *card = &connector->card;
    const bool is_local = connector->parent.is_local;

    if (!is_local && card->count == 0) {
        fail_address(
            connector,
            connector->parent.own_addresses > 0
                ? "all its addresses are also addresses of this host, where another "
                  "process may listen: set " HVD_ENV_IFACE
                  " to an interface whose address differs from node to node"
                : "the rank has no address",
            now_ms);
        return;
    }
    connector->fd =
        is_local ? hvd_socket_connect_unix(card->name)
                 : hvd_socket_connect_tcp(&card->addresses[connector->index], card->port);
    if (connector->fd < 0) {
        fail_address(connector, strerror(errno), now_ms);
        return;
    }
    enter_state(connector, STATE_CONNECTING, now_ms + connector->connect_ms);
}

static void send_hello(struct hvd_connector *connector, int64_t now_ms)
{
    struct hvd_handshake *handshake = &connector->handshake;
    int error = hvd_socket_connect_error(connector->fd);
    int fd = connector->fd;

    if (error != 0) {
        fail_address(connector, strerror(error), now_ms);
        return;
    }
    connector->fd = -1;
    connector->attempts = connector->is_refused ? connector->attempts : 0;
    if (hvd_link_create(fd, HVD_HANDSHAKE_MAX_BYTES, &connector->link) != 0 ||
        hvd_handshake_begin(handshake, &connector->self, connector->parent.rank) != 0 ||
        hvd_link_send(connector->link, HVD_CONNECT_HELLO, &handshake->hello,
                      sizeof(handshake->hello), -1) != 0) {
        fail_address(connector, "out of memory", now_ms);
        return;
    }
    handshake->endpoint = hvd_socket_endpoint_of(fd, HVD_SOCKET_CONNECTED);
    enter_state(connector, STATE_HELLO_SENT, now_ms + ANSWER_MS);
}

/* The rank itself answered, but sees the connection under another address: a process at
 * the address we tried has connected to the real one and relays the messages of both
 * ends. */
static void fail_from_elsewhere(struct hvd_connector *connector, int64_t now_ms)
{
    const struct hvd_socket_endpoint *endpoint = &connector->handshake.endpoint;
    char where[64];
    char why[200];

    hvd_ip_print(&endpoint->ip, endpoint->port, where);
    snprintf(
        why, sizeof(why),
        "the rank received this connection at %s: refused, because it is relayed; hvd "
        "needs addresses that are not translated",
        where);
    fail_with_answer(connector, why, now_ms);
}

static void on_challenge(struct hvd_connector *connector,
                         const struct hvd_link_message *message, int64_t now_ms)
{
    const unsigned char *secret = connector->self.secret;
    struct hvd_handshake *handshake = &connector->handshake;
    struct hvd_handshake_challenge challenge;
    struct hvd_socket_endpoint endpoint = handshake->endpoint;
    unsigned char proof[HVD_HANDSHAKE_PROOF_BYTES];
    struct hvd_handshake_keys keys;

    if (message->type != HVD_CONNECT_CHALLENGE || message->bytes != sizeof(challenge)) {
        fail_with_answer(connector, "it is not a rank of a job", now_ms);
        return;
    }
    memcpy(&challenge, message->payload, sizeof(challenge));
    memcpy(handshake->parent_nonce, challenge.nonce, sizeof(challenge.nonce));
    handshake->endpoint = challenge.endpoint;
    if (!hvd_handshake_is_proof(handshake, secret, HVD_HANDSHAKE_PARENT,
                                challenge.proof)) {
        fail_with_answer(connector, "it does not know the secret of this job", now_ms);
        return;
    }
    if (memcmp(&challenge.endpoint, &endpoint, sizeof(endpoint)) != 0) {
        fail_from_elsewhere(connector, now_ms);
        return;
    }
    hvd_handshake_prove(handshake, secret, HVD_HANDSHAKE_CHILD, proof);
    hvd_link_send(connector->link, HVD_CONNECT_PROOF, proof, sizeof(proof), -1);
    hvd_handshake_keys_make(handshake, secret, &keys);
    hvd_link_protect(connector->link, keys.child_seal, keys.parent_seal);
    sodium_memzero(&keys, sizeof(keys));
    enter_state(connector, STATE_PROOF_SENT, now_ms + ANSWER_MS);
}

static void read_message(struct hvd_connector *connector, int64_t now_ms)
{
    struct hvd_link_message message;
    int status;

    hvd_link_flush(connector->link);
    status = hvd_link_read(connector->link);
    if (status == 0) {
        status = hvd_link_next(connector->link, &message);
    }
    if (status == HVD_INPROGRESS) {
        return;
    }
    if (status != 0) {
        int error = hvd_link_errno(connector->link);

        fail_address(connector, error != 0 ? strerror(error) : "it closed the connection",
                     now_ms);
    } else if (connector->state == STATE_HELLO_SENT) {
        on_challenge(connector, &message, now_ms);
    } else if (message.type != HVD_CONNECT_WELCOME) {
        fail_with_answer(connector, "it refused this rank", now_ms);
    } else {
        enter_state(connector, STATE_DONE, INT64_MAX);
    }
}

int hvd_connector_step(struct hvd_connector *connector, short revents, int64_t now_ms)
{
    bool is_late = revents == 0 && now_ms >= connector->deadline_ms;

    if (connector->state == STATE_DONE || (revents == 0 && !is_late)) {
        return HVD_INPROGRESS;
    }
    if (connector->state == STATE_PAUSE) {
        begin_address(connector, now_ms);
    } else if (is_late) {
        fail_address(connector, "no answer", now_ms);
    } else if (connector->state == STATE_CONNECTING) {
        send_hello(connector, now_ms);
    } else {
        read_message(connector, now_ms);
    }
    return connector->state == STATE_DONE ? 0 : HVD_INPROGRESS;
}

struct hvd_link *hvd_connector_take(struct hvd_connector *connector,
                                    struct hvd_handshake_keys *keys)
{
    struct hvd_link *link = connector->link;

    connector->link = NULL;
    if (keys != NULL) {
        hvd_handshake_keys_make(&connector->handshake, connector->self.secret, keys);
    }
    return link;
}

void hvd_connector_restart(struct hvd_connector *connector, int64_t now_ms)
{
    connector->connect_ms = CONNECT_MS;
    enter_state(connector, STATE_PAUSE, now_ms);
}
