/* SPDX-License-Identifier: Apache-2.0 */
/* The child's side of connecting. */
#include "collectives/transport/control/dial.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/transport/control/control_wire.h"
#include "gpu_binding/base/fork_close.h"
#include "pmix_boot/wire/handshake.h"

/* An address that is not reachable from here must not hold up the next one for long; a lost
 * packet is sent again after a second, so the limit doubles each round up to the maximum. */
#define CONNECT_MS 500
#define CONNECT_MAX_MS 8000
/* The parent accepts in its kernel, but answers when it has come as far as we have. */
#define ANSWER_MS 5000
/* Between two rounds through the addresses. */
#define PAUSE_MS 50

enum state {
    STATE_PAUSE,
    STATE_CONNECTING,
    STATE_HELLO_SENT,
    STATE_PROOF_SENT,
    STATE_DONE,
};

struct hvd_dial {
    const struct hvd_boot *boot;
    int parent;
    bool is_local;
    struct hvd_control_card card;
    enum state state;
    int64_t deadline_ms;
    int index; /* of the address being tried */
    int connect_ms;
    int fd; /* until it is connected, then: */
    struct hvd_link *link;
    struct hvd_handshake_hello hello;
    bool is_refused; /* someone answered, wrongly: trouble says how */
    char trouble[160];
};

int hvd_dial_create(const struct hvd_boot *boot, int parent,
                    const struct hvd_control_card *card, struct hvd_dial **out)
{
    struct hvd_dial *dial = calloc(1, sizeof(*dial));

    if (dial == NULL) {
        return HVD_ERR_NOMEM;
    }
    dial->boot = boot;
    dial->parent = parent;
    dial->is_local = boot->layout.node[parent] == boot->layout.node[boot->rank];
    dial->card = *card;
    dial->connect_ms = CONNECT_MS;
    dial->fd = -1;
    *out = dial;
    return 0;
}

void hvd_dial_destroy(struct hvd_dial *dial)
{
    if (dial == NULL) {
        return;
    }
    hvd_fork_close_now(dial->fd);
    hvd_link_destroy(dial->link);
    free(dial);
}

const char *hvd_dial_trouble(const struct hvd_dial *dial)
{
    return dial->trouble;
}

void hvd_dial_poll(const struct hvd_dial *dial, struct pollfd *fd, int64_t *deadline_ms)
{
    *fd = (struct pollfd){.fd = -1};
    if (dial->state == STATE_DONE) {
        return;
    }
    if (dial->state == STATE_CONNECTING) {
        *fd = (struct pollfd){.fd = dial->fd, .events = POLLOUT};
    } else if (dial->link != NULL) {
        *fd = (struct pollfd){.fd = hvd_link_fd(dial->link), .events = POLLIN};
    }
    if (dial->deadline_ms < *deadline_ms) {
        *deadline_ms = dial->deadline_ms;
    }
}

static void enter(struct hvd_dial *dial, enum state state, int64_t deadline_ms)
{
    dial->state = state;
    dial->deadline_ms = deadline_ms;
}

/* Gives this address up and goes on to the next one, after a pause when it was the last. */
static void fail(struct hvd_dial *dial, const char *why, int64_t now_ms)
{
    const struct hvd_control_card *card = &dial->card;
    char where[64] = "its unix socket";
    int addresses = dial->is_local ? 1 : card->count;
    int64_t pause_ms = 0;

    if (!dial->is_local && addresses > 0) {
        hvd_ip_print(&card->addresses[dial->index], card->port, where);
    }
    if (!dial->is_refused) {
        snprintf(dial->trouble, sizeof(dial->trouble), "%s: %s", where, why);
    }
    hvd_fork_close_now(dial->fd);
    dial->fd = -1;
    hvd_link_destroy(dial->link);
    dial->link = NULL;
    if (++dial->index >= addresses) {
        dial->index = 0;
        dial->connect_ms *= 2;
        if (dial->connect_ms > CONNECT_MAX_MS) {
            dial->connect_ms = CONNECT_MAX_MS;
        }
        pause_ms = PAUSE_MS;
    }
    enter(dial, STATE_PAUSE, now_ms + pause_ms);
}

/* As fail, for a reason that tells more than silence at another try. */
static void refuse(struct hvd_dial *dial, const char *why, int64_t now_ms)
{
    dial->is_refused = false;
    fail(dial, why, now_ms);
    dial->is_refused = true;
}

static void begin(struct hvd_dial *dial, int64_t now_ms)
{
    const struct hvd_control_card *card = &dial->card;

    if (!dial->is_local && card->count == 0) {
        fail(dial, "the rank has no address", now_ms);
        return;
    }
    dial->fd = dial->is_local
                   ? hvd_socket_connect_unix(card->name)
                   : hvd_socket_connect_tcp(&card->addresses[dial->index], card->port);
    if (dial->fd < 0) {
        fail(dial, strerror(errno), now_ms);
        return;
    }
    enter(dial, STATE_CONNECTING, now_ms + dial->connect_ms);
}

static void say_hello(struct hvd_dial *dial, int64_t now_ms)
{
    int error = hvd_socket_connect_error(dial->fd);
    int fd = dial->fd;

    if (error != 0) {
        fail(dial, strerror(error), now_ms);
        return;
    }
    dial->fd = -1;
    if (hvd_link_create(fd, HVD_HANDSHAKE_MAX_BYTES, &dial->link) != 0 ||
        hvd_handshake_hello_make(&dial->hello, dial->boot->rank, dial->parent) != 0 ||
        hvd_link_send(dial->link, HVD_WIRE_HELLO, &dial->hello, sizeof(dial->hello),
                      -1) != 0) {
        fail(dial, "out of memory", now_ms);
        return;
    }
    enter(dial, STATE_HELLO_SENT, now_ms + ANSWER_MS);
}

static void hear_challenge(struct hvd_dial *dial, const struct hvd_link_message *message,
                           int64_t now_ms)
{
    const unsigned char *secret = dial->boot->secret;
    struct hvd_handshake_challenge challenge;
    unsigned char proof[HVD_HANDSHAKE_PROOF_BYTES];

    if (message->type != HVD_WIRE_CHALLENGE || message->bytes != sizeof(challenge)) {
        refuse(dial, "it is no rank of a job", now_ms);
        return;
    }
    memcpy(&challenge, message->payload, sizeof(challenge));
    if (!hvd_handshake_is_proof(challenge.proof, secret, HVD_HANDSHAKE_PARENT,
                                &dial->hello, challenge.nonce)) {
        refuse(dial, "it does not know the secret of this job", now_ms);
        return;
    }
    hvd_handshake_prove(proof, secret, HVD_HANDSHAKE_CHILD, &dial->hello,
                        challenge.nonce);
    hvd_link_send(dial->link, HVD_WIRE_PROOF, proof, sizeof(proof), -1);
    enter(dial, STATE_PROOF_SENT, now_ms + ANSWER_MS);
}

static void hear(struct hvd_dial *dial, int64_t now_ms)
{
    struct hvd_link_message message;
    int status = hvd_link_read(dial->link);

    if (status == 0) {
        status = hvd_link_next(dial->link, &message);
    }
    if (status == HVD_INPROGRESS) {
        return;
    }
    if (status != 0) {
        int error = hvd_link_errno(dial->link);

        fail(dial, error != 0 ? strerror(error) : "it closed the connection", now_ms);
    } else if (dial->state == STATE_HELLO_SENT) {
        hear_challenge(dial, &message, now_ms);
    } else if (message.type != HVD_WIRE_WELCOME) {
        refuse(dial, "it does not want this rank", now_ms);
    } else {
        enter(dial, STATE_DONE, INT64_MAX);
    }
}

int hvd_dial_step(struct hvd_dial *dial, short revents, int64_t now_ms,
                  struct hvd_link **link)
{
    bool is_late = revents == 0 && now_ms >= dial->deadline_ms;

    if (dial->state == STATE_DONE || (revents == 0 && !is_late)) {
        return HVD_INPROGRESS;
    }
    if (dial->state == STATE_PAUSE) {
        begin(dial, now_ms);
    } else if (is_late) {
        fail(dial, "no answer", now_ms);
    } else if (dial->state == STATE_CONNECTING) {
        say_hello(dial, now_ms);
    } else {
        hear(dial, now_ms);
    }
    if (dial->state != STATE_DONE) {
        return HVD_INPROGRESS;
    }
    *link = dial->link;
    dial->link = NULL;
    return 0;
}
