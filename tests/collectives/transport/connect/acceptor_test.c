/* SPDX-License-Identifier: Apache-2.0 */
/* A child that connects beside strangers, who come faster than they are heard and say nothing. */
#include "collectives/transport/connect/acceptor.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectives/transport/connect/connect_protocol.h"
#include "gpu_binding/base/clock.h"
#include "pmix_boot/wire/handshake.h"
#include "pmix_boot/wire/socket.h"
#include "tests/tap.h"

enum {
    STRANGERS = 120, /* more than may be pending */
    STEPS = 300
};

struct place {
    struct hvd_handshake_party self;
    int listening[2];
    uint16_t port;
    char name[HVD_SOCKET_NAME_BYTES];
    struct hvd_acceptor *acceptor;
    int admitted; /* the child, or -1 */
};

static struct place open_place(void)
{
    static unsigned char secret[HVD_HANDSHAKE_SECRET_BYTES];
    struct place place = {.self = {.rank = 0, .size = 2, .secret = secret},
                          .admitted = -1};

    memset(secret, 5, sizeof(secret));
    if (hvd_socket_listen_tcp(HVD_SOCKET_LOOPBACK, &place.listening[0], &place.port,
                              NULL) != 0 ||
        hvd_socket_listen_unix(&place.listening[1], place.name, NULL) != 0) {
        abort();
    }
    return place;
}

static bool admit(void *context, int child, struct hvd_link *link)
{
    struct place *place = context;

    place->admitted = child;
    hvd_link_destroy(link);
    return true;
}

static void step(struct place *place)
{
    int64_t deadline_ms = hvd_clock_ms() + 10;
    struct pollfd fds[128];
    int count = hvd_acceptor_poll(place->acceptor, fds, &deadline_ms);

    (void)poll(fds, (nfds_t)count, 10);
    hvd_acceptor_step(place->acceptor, fds, hvd_clock_ms(), admit, place);
}

static int connect_here(const struct place *place)
{
    const struct hvd_ip here = {.version = 4, .bytes = {127, 0, 0, 1}};

    return hvd_socket_connect_tcp(&here, place->port);
}

/* Takes the challenge when it is there, and answers. */
static void answer(struct hvd_link *link, const struct hvd_handshake_hello *hello,
                   const unsigned char *secret)
{
    unsigned char proof[HVD_HANDSHAKE_PROOF_BYTES];
    struct hvd_handshake_challenge challenge;
    struct hvd_link_message message;

    (void)hvd_link_read(link);
    if (hvd_link_next(link, &message) == 0 && message.bytes == sizeof(challenge)) {
        memcpy(&challenge, message.payload, sizeof(challenge));
        hvd_handshake_prove(proof, secret, HVD_HANDSHAKE_CHILD, hello, challenge.nonce);
        hvd_link_send(link, HVD_CONNECT_PROOF, proof, sizeof(proof), -1);
    }
}

int main(void)
{
    struct place place = open_place();
    struct hvd_handshake_hello hello;
    struct hvd_link *child = NULL;
    int strangers[STRANGERS];

    if (hvd_acceptor_create(&place.self, place.listening, 1, &place.acceptor) != 0 ||
        hvd_link_create(connect_here(&place), 256, &child) != 0 ||
        hvd_handshake_hello_make(&hello, 1, 0) != 0) {
        abort();
    }
    hvd_link_send(child, HVD_CONNECT_HELLO, &hello, sizeof(hello), -1);
    for (int i = 0; i < STRANGERS; i++) {
        strangers[i] = connect_here(&place);
    }
    for (int i = 0; i < STEPS && place.admitted < 0; i++) {
        step(&place);
        hvd_link_flush(child);
        answer(child, &hello, place.self.secret);
    }
    tap_ok(place.admitted == 1, "a child is let in beside %d silent connections",
           STRANGERS);
    hvd_link_destroy(child);
    for (int i = 0; i < STRANGERS; i++) {
        close(strangers[i]);
    }
    hvd_acceptor_destroy(place.acceptor);
    close(place.listening[0]);
    close(place.listening[1]);
    return tap_done();
}
