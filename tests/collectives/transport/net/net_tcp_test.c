/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that send to each other over TCP, beside strangers. All run in one process. */
#include "collectives/transport/net/net_tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collectives/transport/connect/connect_card.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/env.h"
#include "tests/tap.h"

enum {
    WAIT_MS = 60000, /* thrice the time after which a rank gives up */
    OFTEN = 1000,
    STRANGERS = 100,
    TEXT_BYTES = 16,
    SIZE = 3, /* number of ranks in the job */
};

static const struct hvd_net_transport *const transport = &hvd_net_tcp_transport;

struct rank {
    struct hvd_net_tcp *tcp;
    int rank;
    int arrived;
    char text[TEXT_BYTES]; /* text of the last fragment that arrived */
    int sent, lost; /* sends that did not end at once: how many succeeded and failed */
    int failed; /* number of failures; the last one was for failed_peer */
    void *failed_peer;
    char reason[300];
};

/* --- a clock that may jump --- */

static int64_t jumped_ms;

int64_t __real_hvd_clock_ms(void);
int64_t __wrap_hvd_clock_ms(void);

int64_t __wrap_hvd_clock_ms(void)
{
    return __real_hvd_clock_ms() + jumped_ms;
}

/* --- ranks --- */

static int on_arrival(void *context, const struct hvd_net_flow_arrival *arrival)
{
    struct rank *self = context;

    self->arrived++;
    snprintf(self->text, sizeof(self->text), "%.*s", (int)arrival->bytes,
             (const char *)arrival->data);
    return 0;
}

static void on_sent(void *context, struct hvd_net_fragment *fragment, int status)
{
    struct rank *self = context;

    (void)fragment;
    self->sent += status == 0 ? 1 : 0;
    self->lost += status != 0 ? 1 : 0;
}

static void on_failure(void *context, void *peer, const char *reason)
{
    struct rank *self = context;

    self->failed++;
    self->failed_peer = peer;
    snprintf(self->reason, sizeof(self->reason), "%s", reason);
}

static void start(struct rank *self, int rank, int secret_byte)
{
    unsigned char secret[HVD_HANDSHAKE_SECRET_BYTES];
    const struct hvd_handshake_party party = {rank, SIZE, secret, 0};
    const struct hvd_net_handlers handlers = {
        .context = self, .arrived = on_arrival, .sent = on_sent, .failed = on_failure};
    struct hvd_error err = {0};

    memset(secret, secret_byte, sizeof(secret));
    *self = (struct rank){.rank = rank};
    if (hvd_net_tcp_create(&handlers, &self->tcp, &err) != 0 ||
        hvd_net_tcp_join(self->tcp, &party) != 0) {
        tap_note("%s", err.text);
        exit(98);
    }
}

/* Opens an endpoint to another rank. Failures are reported for `peer`. */
static void *open_to(struct rank *self, const struct rank *other, void *peer)
{
    const void *address;
    size_t bytes;
    void *endpoint = NULL;

    hvd_net_tcp_address(other->tcp, &address, &bytes);
    if (transport->open(self->tcp, other->rank, address, bytes, peer, &endpoint) != 0) {
        exit(98);
    }
    return endpoint;
}

static int send_as(struct rank *self, int source, void *endpoint, const char *text)
{
    static struct hvd_net_fragment fragments[64];
    static int next;
    struct hvd_net_fragment *fragment = &fragments[next++ % 64];

    *fragment = (struct hvd_net_fragment){
        .header.source = (uint32_t)source, .data = text, .bytes = strlen(text)};
    return transport->send(self->tcp, endpoint, fragment);
}

static int send_text(struct rank *self, void *endpoint, const char *text)
{
    return send_as(self, self->rank, endpoint, text);
}

/* Makes progress on both until *count is at least `wanted`. Returns false if that takes
 * too long. */
static bool drive(struct rank *one, struct rank *other, const int *count, int wanted)
{
    int64_t end_ms = __real_hvd_clock_ms() + WAIT_MS;

    while (*count < wanted && __real_hvd_clock_ms() < end_ms) {
        transport->progress(one->tcp);
        transport->progress(other->tcp);
    }
    return *count >= wanted;
}

/* Makes progress on both for a time, and often even if the machine stalls meanwhile. */
static void drive_for(struct rank *one, struct rank *other, int ms)
{
    int64_t end_ms = __real_hvd_clock_ms() + ms;

    for (int i = 0; i < OFTEN || __real_hvd_clock_ms() < end_ms; i++) {
        transport->progress(one->tcp);
        transport->progress(other->tcp);
    }
}

static void finish(struct rank *self)
{
    transport->destroy(self->tcp);
}

static void end(struct rank *a, struct rank *b)
{
    finish(b);
    finish(a);
}

/* Starts two ranks that know the secret. Returns an endpoint from a to b. */
static void *begin(struct rank *a, struct rank *b)
{
    start(a, 0, 1);
    start(b, 1, 1);
    return open_to(a, b, "b");
}

/* --- tests --- */

static void ranks_reach_each_other(void)
{
    struct rank a, b;
    void *to_b = begin(&a, &b), *to_a;

    tap_ok(send_text(&a, to_b, "one") == HVD_INPROGRESS,
           "a fragment that is sent before the connection waits for it");
    tap_ok(drive(&a, &b, &b.arrived, 1) && strcmp(b.text, "one") == 0 && a.sent == 1,
           "the fragment arrives: %s", b.text);
    tap_ok(send_text(&a, to_b, "two") == 0 && drive(&a, &b, &b.arrived, 2) &&
               strcmp(b.text, "two") == 0,
           "later fragments are sent at once");
    to_a = open_to(&b, &a, "a");
    send_text(&b, to_a, "back");
    tap_ok(drive(&a, &b, &a.arrived, 1) && strcmp(a.text, "back") == 0,
           "the other direction uses a connection of its own");
    tap_ok(!transport->has_cuda(a.tcp) && a.failed + b.failed == 0, "nothing has failed");
    finish(&b);
    tap_ok(drive(&a, &a, &a.failed, 1) && strcmp(a.failed_peer, "b") == 0,
           "the end of a rank is reported: %s", a.reason);
    send_text(&a, to_b, "three");
    drive_for(&a, &a, 50);
    tap_ok(a.failed == 1, "the end of a rank is reported only once");
    transport->close(a.tcp, to_b);
    tap_ok(send_text(&a, to_b, "four") == HVD_ERR_PEER,
           "a closed endpoint sends nothing");
    finish(&a);
}

static void the_only_peer_keeps_nobody_out(void)
{
    struct rank a, b, c;
    void *to_b = begin(&a, &b), *to_a = open_to(&b, &a, "a"), *from_c;
    bool has_come = true;

    send_text(&b, to_a, "first");
    send_text(&a, to_b, "first");
    has_come = drive(&a, &b, &a.arrived, 1) && drive(&a, &b, &b.arrived, 1);
    for (int i = 2; i < 40 && has_come; i++) {
        send_text(&a, to_b, "more");
        send_text(&b, to_a, "more");
        has_come = drive(&a, &b, &a.arrived, i) && drive(&a, &b, &b.arrived, i);
    }
    tap_ok(has_come, "two ranks that have no other peer exchange many fragments");
    start(&c, 2, 1);
    from_c = open_to(&c, &b, "b");
    send_text(&c, from_c, "third");
    tap_ok(drive(&b, &c, &b.arrived, 40) && strcmp(b.text, "third") == 0,
           "a third rank is admitted beside them");
    send_text(&a, to_b, "first again");
    tap_ok(drive(&a, &b, &b.arrived, 41) && strcmp(b.text, "first again") == 0,
           "and the first peer is still read");
    finish(&c);
    finish(&b);
    tap_ok(drive(&a, &a, &a.failed, 1) && strcmp(a.failed_peer, "b") == 0,
           "the end of the only peer is reported");
    finish(&a);
}

static void strangers_stay_outside(void)
{
    struct rank a, b, stranger;
    void *to_b;

    start(&a, 0, 1);
    start(&b, 1, 1);
    start(&stranger, 0, 2); /* claims to be rank 0, but does not know the secret */
    to_b = open_to(&stranger, &b, "b");
    send_text(&stranger, to_b, "forged");
    drive_for(&stranger, &b, 500);
    tap_ok(b.arrived == 0 && stranger.sent == 0, "no fragment of a stranger is accepted");
    jumped_ms += 60000;
    tap_ok(drive(&stranger, &b, &stranger.failed, 1) &&
               strstr(stranger.reason, "does not know the secret of this job") != NULL,
           "the error of the stranger says why: %s", stranger.reason);
    tap_ok(stranger.lost == 1 || drive(&stranger, &b, &stranger.lost, 1),
           "the fragment of the stranger has failed");
    to_b = open_to(&a, &b, "b");
    send_text(&a, to_b, "true");
    tap_ok(drive(&a, &b, &b.arrived, 1) && strcmp(b.text, "true") == 0,
           "a rank of the job is let in: %s", b.text);
    finish(&stranger);
    end(&a, &b);
}

static void ranks_speak_for_themselves_only(void)
{
    struct rank a, b;
    void *to_b = begin(&a, &b);

    send_as(&a, 2, to_b, "of rank 2");
    tap_ok(drive(&a, &b, &a.failed, 1) && b.arrived == 0,
           "a rank that sends in the name of another is disconnected: %s", a.reason);
    end(&a, &b);
}

static int connect_to(const struct rank *self)
{
    struct hvd_connect_card card;
    const void *address;
    size_t bytes;

    hvd_net_tcp_address(self->tcp, &address, &bytes);
    if (hvd_connect_card_parse(&card, address, bytes) != 0) {
        exit(98);
    }
    return hvd_socket_connect_tcp(&card.addresses[0], card.port);
}

/* Counts the connections that the other end has closed. */
static int count_ended(const int fds[STRANGERS])
{
    int ended = 0;

    for (int i = 0; i < STRANGERS; i++) {
        char byte;
        ssize_t got = recv(fds[i], &byte, 1, MSG_DONTWAIT);

        ended += got == 0 || (got < 0 && errno != EAGAIN) ? 1 : 0;
    }
    return ended;
}

/* Half of the strangers say nothing, half send nonsense. */
static void floods_keep_nobody_out(void)
{
    static const char noise[] = "GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n";
    struct rank a, b;
    int fds[STRANGERS];
    int ended = 0;
    int64_t end_ms;
    void *to_b;

    start(&a, 0, 1);
    start(&b, 1, 1);
    for (int i = 0; i < STRANGERS; i++) {
        fds[i] = connect_to(&b);
        transport->progress(b.tcp);
        if (i % 2 != 0) {
            (void)!send(fds[i], noise, sizeof(noise), MSG_NOSIGNAL);
        }
    }
    to_b = open_to(&a, &b, "b");
    send_text(&a, to_b, "true");
    tap_ok(drive(&a, &b, &b.arrived, 1) && strcmp(b.text, "true") == 0,
           "a rank is let in beside %d strangers", STRANGERS);
    /* the jump wakes no timer, so one more connection makes b look at the clock */
    jumped_ms += 60000;
    close(connect_to(&b));
    end_ms = __real_hvd_clock_ms() + WAIT_MS;
    while (ended < STRANGERS && __real_hvd_clock_ms() < end_ms) {
        drive_for(&a, &b, 10);
        ended = count_ended(fds);
    }
    for (int i = 0; i < STRANGERS; i++) {
        close(fds[i]);
    }
    tap_ok(ended == STRANGERS, "all strangers are disconnected after a while (%d)",
           ended);
    tap_ok(send_text(&a, to_b, "more") == 0 && drive(&a, &b, &b.arrived, 2),
           "the rank stays connected");
    end(&a, &b);
}

static void who_cannot_be_reached_is_told(void)
{
    struct rank a, b;
    void *to_b = begin(&a, &b);

    finish(&b); /* closes its port */
    send_text(&a, to_b, "lost");
    drive_for(&a, &a, 200);
    tap_ok(a.failed == 0, "a rank that cannot be reached is tried again for a while");
    jumped_ms += 21000;
    tap_ok(drive(&a, &a, &a.failed, 1) && strstr(a.reason, " port ") != NULL &&
               strstr(a.reason, "Connection refused") != NULL,
           "after that the error gives the reason and the address: %s", a.reason);
    tap_ok(drive(&a, &a, &a.lost, 1), "the fragment that was to be sent has failed");
    finish(&a);
}

/* The other rank makes no progress, like a process that is stopped. */
static void who_is_stopped_is_waited_for(void)
{
    struct rank a, b;
    void *to_b = begin(&a, &b);

    send_text(&a, to_b, "late");
    for (int i = 0; i < 10; i++) {
        drive_for(&a, &a, 150);
        jumped_ms += 6000;
    }
    tap_ok(a.failed == 0, "a rank gets a minute if its host answers%s%s",
           a.failed != 0 ? ": " : "", a.reason);
    tap_ok(drive(&a, &b, &b.arrived, 1) && strcmp(b.text, "late") == 0,
           "the rank gets the fragment after that: %s", b.text);
    end(&a, &b);
}

/* Listens at the port that a rank has closed: connections to it succeed again. */
static int listen_at(const struct hvd_connect_card *card)
{
    const int on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(card->port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(fd, 8) != 0) {
        exit(98);
    }
    return fd;
}

/* After a failed attempt to connect, a rank does not run for longer than the time limit.
 * It must then try again. */
static void who_did_not_run_looks_again(void)
{
    struct rank a, b;
    struct hvd_connect_card card;
    const void *address;
    size_t bytes;
    void *to_b;
    int listening;

    start(&a, 0, 1);
    start(&b, 1, 1);
    hvd_net_tcp_address(b.tcp, &address, &bytes);
    hvd_connect_card_parse(&card, address, bytes);
    to_b = open_to(&a, &b, "b");
    finish(&b);
    send_text(&a, to_b, "late");
    for (int i = 0; i < 8; i++) {
        transport->progress(a.tcp);
    }
    listening = listen_at(&card);
    jumped_ms += 30000;
    drive_for(&a, &a, 200);
    tap_ok(a.failed == 0, "a rank that has not run for long tries again%s%s",
           a.failed != 0 ? ", but it said: " : "", a.reason);
    close(listening);
    finish(&a);
}

/* The other rank is stopped, and gets more data than its kernel takes. */
static void who_is_stopped_may_be_full(void)
{
    enum {
        MOST = 512,
        BYTES = 60000,
        STOPPED_MS = 5000 /* longer than HVD_SOCKET_DEAD_AFTER_MS */
    };
    static struct hvd_net_fragment fragments[MOST];
    static char data[BYTES];
    struct rank a, b;
    void *to_b = begin(&a, &b);
    int count = 0;

    send_text(&a, to_b, "first");
    drive(&a, &b, &b.arrived, 1);
    for (int status = 0; status == 0 && count < MOST; count++) {
        fragments[count] = (struct hvd_net_fragment){.data = data, .bytes = BYTES};
        status = transport->send(a.tcp, to_b, &fragments[count]);
    }
    tap_ok(count < MOST, "the kernel of a stopped rank takes %d fragments", count - 1);
    drive_for(&a, &a, STOPPED_MS);
    tap_ok(a.failed == 0, "a stopped rank gets more time than a silent host%s%s",
           a.failed != 0 ? ": " : "", a.reason);
    tap_ok(drive(&a, &b, &b.arrived, 1 + count),
           "the rank gets all fragments after that");
    end(&a, &b);
}

int main(void)
{
    setenv(HVD_ENV_IFACE, "lo", 1);
    ranks_reach_each_other();
    the_only_peer_keeps_nobody_out();
    strangers_stay_outside();
    ranks_speak_for_themselves_only();
    floods_keep_nobody_out();
    who_cannot_be_reached_is_told();
    who_is_stopped_is_waited_for();
    who_did_not_run_looks_again();
    who_is_stopped_may_be_full();
    return tap_done();
}
