/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the acceptor, through which a rank's children in the control tree connect, while
 * strangers connect, too. Some strangers send nothing and connect faster than they are
 * served, others relay a child's messages. Also tests a child that connects again, and an
 * acceptor that lacks descriptors or memory. */
#include "collectives/transport/connect/acceptor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collectives/transport/connect/connect_protocol.h"
#include "collectives/transport/connect/connector.h"
#include "gpu_binding/base/clock.h"
#include "pmix_boot/sock/handshake.h"
#include "pmix_boot/sock/socket.h"
#include "tests/tap.h"

enum {
    STRANGERS = 120, /* more than can be pending at once */
    STEPS = 300,
    RANKS = 3
};

struct place {
    struct hvd_handshake_party self;
    struct hvd_acceptor_doors doors;
    uint16_t port;
    char name[HVD_SOCKET_NAME_BYTES];
    struct hvd_acceptor *acceptor;
    int admitted; /* the child that was admitted, or -1 */
    struct hvd_handshake_keys keys; /* keys of its connection */
};

static struct place open_place(void)
{
    static unsigned char secret[HVD_HANDSHAKE_SECRET_BYTES];
    struct place place = {.self = {.rank = 0, .size = RANKS, .secret = secret},
                          .doors = {.count = 2},
                          .admitted = -1};

    memset(secret, 5, sizeof(secret));
    if (hvd_socket_listen_tcp(&hvd_socket_loopback, place.doors.fds, &place.port, NULL) !=
            0 ||
        hvd_socket_listen_unix(&place.doors.fds[1], place.name, NULL) != 0) {
        abort();
    }
    if (hvd_acceptor_create(&place.self, &place.doors, 1, &place.acceptor) != 0) {
        abort();
    }
    return place;
}

static bool admit(void *context, int child, struct hvd_link *link,
                  const struct hvd_handshake_keys *keys)
{
    struct place *place = context;

    place->keys = *keys;
    place->admitted = child;
    hvd_link_send(link, HVD_CONNECT_WELCOME, NULL, 0, -1);
    hvd_link_destroy(link);
    return true;
}

static void step_later(struct place *place, int64_t later_ms)
{
    int64_t deadline_ms = hvd_clock_ms() + 10;
    struct pollfd fds[128];
    int count = hvd_acceptor_poll(place->acceptor, fds, &deadline_ms);

    (void)poll(fds, (nfds_t)count, 10);
    hvd_acceptor_step(place->acceptor, fds, hvd_clock_ms() + later_ms, admit, place);
}

static void step(struct place *place)
{
    step_later(place, 0);
}

static int connect_here(const struct place *place)
{
    const struct hvd_ip here = {.version = 4, .bytes = {127, 0, 0, 1}};

    return hvd_socket_connect_tcp(&here, place->port);
}

/* Starts a connector of this rank that connects to the port. */
static struct hvd_connector *start_rank(const struct place *place, int rank,
                                        uint16_t port)
{
    const struct hvd_handshake_party self = {
        .rank = rank, .size = RANKS, .secret = place->self.secret};
    const struct hvd_connect_card card = {
        .port = port, .count = 1, .addresses = {{.version = 4, .bytes = {127, 0, 0, 1}}}};
    const struct hvd_connector_target target = {.card = &card};
    struct hvd_connector *child = NULL;

    if (hvd_connector_create(&self, &target, &child) != 0) {
        abort();
    }
    return child;
}

static struct hvd_connector *start_child(const struct place *place, uint16_t port)
{
    return start_rank(place, 1, port);
}

/* keys of the last child that was welcomed */
static struct hvd_handshake_keys child_keys;

/* Returns whether the child has been welcomed. */
static bool step_child(struct hvd_connector *child)
{
    int64_t deadline_ms = INT64_MAX;
    struct pollfd fd;

    hvd_connector_poll(child, &fd, &deadline_ms);
    (void)poll(&fd, 1, 0);
    if (hvd_connector_step(child, fd.revents, hvd_clock_ms()) != 0) {
        return false;
    }
    hvd_link_destroy(hvd_connector_take(child, &child_keys));
    return true;
}

static int pending_connections(const struct place *place)
{
    int64_t deadline_ms = INT64_MAX;
    struct pollfd fds[128];

    return hvd_acceptor_poll(place->acceptor, fds, &deadline_ms) - 2;
}

static void close_place(struct place *place)
{
    hvd_acceptor_destroy(place->acceptor);
    hvd_acceptor_doors_close(&place->doors);
}

static void strangers_do_not_keep_a_child_out(void)
{
    struct place place = open_place();
    struct hvd_connector *child = start_child(&place, place.port);
    int strangers[STRANGERS];
    bool is_welcome = step_child(child);

    for (int i = 0; i < STRANGERS; i++) {
        strangers[i] = connect_here(&place);
    }
    for (int i = 0; i < STEPS && !is_welcome; i++) {
        step(&place);
        is_welcome = step_child(child);
    }
    tap_ok(is_welcome && place.admitted == 1,
           "a child is let in beside %d silent connections", STRANGERS);
    tap_ok(memcmp(&place.keys, &child_keys, sizeof(child_keys)) == 0,
           "both ends have the same keys");
    for (int i = 0; i < STRANGERS; i++) {
        close(strangers[i]);
    }
    hvd_connector_destroy(child);
    close_place(&place);
}

static bool has_answer(const struct hvd_connector *child)
{
    int64_t deadline_ms = INT64_MAX;
    struct pollfd fd;

    hvd_connector_poll(child, &fd, &deadline_ms);
    return fd.fd >= 0 && poll(&fd, 1, 0) > 0;
}

/* Connects and says hello, to which the place answers with its challenge. */
static void say_hello(struct hvd_connector *child, struct place *place)
{
    for (int i = 0; i < STEPS && !hvd_connector_is_waiting(child); i++) {
        (void)step_child(child);
    }
    for (int i = 0; i < STEPS && !has_answer(child); i++) {
        step(place);
    }
}

/* The child says hello and then stops running, as on a node that swaps. */
static void slow_children_are_waited_for(void)
{
    enum {
        LATE_MS = 30000,
    };
    struct place place = open_place();
    struct hvd_connector *child = start_child(&place, place.port);
    bool is_welcome = false;

    say_hello(child, &place);
    step_later(&place, LATE_MS);
    tap_ok(pending_connections(&place) == 1,
           "a child has %d s from its hello to its proof", LATE_MS / 1000);
    for (int i = 0; i < STEPS && !is_welcome; i++) {
        is_welcome = step_child(child);
        step_later(&place, LATE_MS);
    }
    tap_ok(is_welcome, "a child that proves itself late is let in");
    hvd_connector_destroy(child);
    close_place(&place);
}

/* Two connectors are two attempts of a child: it sends the proof of the first one after
 * the second one has been let in. */
static void late_proofs_are_refused(void)
{
    struct place place = open_place();
    struct hvd_connector *first = start_child(&place, place.port);
    struct hvd_connector *other = start_rank(&place, 2, place.port);
    struct hvd_connector *second = start_child(&place, place.port);
    bool is_welcome = false;
    bool is_other_welcome = false;

    say_hello(first, &place);
    say_hello(other, &place);
    for (int i = 0; i < STEPS && !is_welcome; i++) {
        is_welcome = step_child(second);
        step(&place);
    }
    tap_ok(is_welcome && place.admitted == 1, "a child that connects again is let in");
    place.admitted = -1;
    is_welcome = false;
    for (int i = 0; i < STEPS && !is_welcome && hvd_connector_failure(first)[0] == '\0';
         i++) {
        is_welcome = step_child(first);
        step(&place);
    }
    tap_ok(!is_welcome && place.admitted < 0,
           "the late proof of its first connection is refused");
    for (int i = 0; i < STEPS && !is_other_welcome; i++) {
        is_other_welcome = step_child(other);
        step(&place);
    }
    tap_ok(is_other_welcome && place.admitted == 2,
           "another child, which connected before, is let in");
    hvd_connector_destroy(first);
    hvd_connector_destroy(other);
    hvd_connector_destroy(second);
    close_place(&place);
}

/* --- a stranger that relays --- */

struct relay {
    int listening;
    uint16_t port;
    int ends[2]; /* connections to the child and to the parent; -1 before they exist */
};

static void pass_on(int from, int to)
{
    char data[4096];
    ssize_t got = recv(from, data, sizeof(data), MSG_DONTWAIT);

    if (got > 0 && send(to, data, (size_t)got, MSG_NOSIGNAL) != got) {
        abort();
    }
}

static void step_relay(struct relay *relay, const struct place *place)
{
    if (relay->ends[0] < 0) {
        relay->ends[0] = hvd_socket_accept(relay->listening);
        relay->ends[1] = relay->ends[0] >= 0 ? connect_here(place) : -1;
        return;
    }
    pass_on(relay->ends[0], relay->ends[1]);
    pass_on(relay->ends[1], relay->ends[0]);
}

static void relays_are_refused(void)
{
    struct place place = open_place();
    struct relay relay = {.ends = {-1, -1}};
    struct hvd_connector *child;
    bool is_welcome = false;

    if (hvd_socket_listen_tcp(&hvd_socket_loopback, &relay.listening, &relay.port,
                              NULL) != 0) {
        abort();
    }
    child = start_child(&place, relay.port);
    for (int i = 0; i < STEPS && !is_welcome && hvd_connector_failure(child)[0] == '\0';
         i++) {
        is_welcome = step_child(child);
        step_relay(&relay, &place);
        step(&place);
    }
    tap_ok(!is_welcome && place.admitted < 0,
           "a child whose messages a stranger relays is not let in");
    tap_ok(strstr(hvd_connector_failure(child), "it is relayed") != NULL,
           "the error of the child says so: %s", hvd_connector_failure(child));
    hvd_connector_destroy(child);
    close(relay.listening);
    close(relay.ends[0]);
    close(relay.ends[1]);
    close_place(&place);
}

/* --- no descriptors or memory --- */

static int accept_errno; /* error that accept returns; 0: none */

int __real_hvd_socket_accept(int listening_fd);
int __wrap_hvd_socket_accept(int listening_fd);

int __wrap_hvd_socket_accept(int listening_fd)
{
    if (accept_errno != 0) {
        errno = accept_errno;
        return -1;
    }
    return __real_hvd_socket_accept(listening_fd);
}

static bool is_open(const struct place *place)
{
    int64_t deadline_ms = INT64_MAX;
    struct pollfd fds[128];

    hvd_acceptor_poll(place->acceptor, fds, &deadline_ms);
    return fds[0].fd == place->doors.fds[0];
}

static void lack_of_room_is_waited_for(int error)
{
    struct place place = open_place();
    struct hvd_connector *child = start_child(&place, place.port);
    bool is_welcome = false;
    bool was_closed;

    step_child(child);
    accept_errno = error;
    step(&place);
    was_closed = !is_open(&place);
    accept_errno = 0;
    for (int i = 0; i < STEPS && !is_welcome; i++) {
        step(&place);
        is_welcome = step_child(child);
    }
    tap_ok(was_closed && is_welcome,
           "\"%s\": the acceptor pauses, and lets the child in later", strerror(error));
    hvd_connector_destroy(child);
    close_place(&place);
}

int main(void)
{
    strangers_do_not_keep_a_child_out();
    slow_children_are_waited_for();
    late_proofs_are_refused();
    relays_are_refused();
    lack_of_room_is_waited_for(EMFILE);
    lack_of_room_is_waited_for(ENOMEM);
    lack_of_room_is_waited_for(ENOBUFS);
    return tap_done();
}
