/* SPDX-License-Identifier: Apache-2.0 */
/* Tests a channel between two ranks: the order and the matching of its messages, and the
 * window that limits the data under way. */
#include "collectives/transport/net/net_flow.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tests/collectives/transport/net/net_wire.h"
#include "tests/tap.h"

enum {
    MESSAGES = 40,
    LARGEST = 400000
};

struct message {
    struct hvd_net_op sent;
    /* take() finds the message by the address of this member */
    struct hvd_net_op received;
    char *out;
    char *in;
    size_t bytes;
    size_t taken; /* bytes that were given to take() */
    bool is_torn; /* a piece did not follow the previous one, or cut an element in two */
};

static void take(struct hvd_net_op *op, const void *data, size_t bytes)
{
    struct message *message =
        (struct message *)((char *)op - offsetof(struct message, received));
    bool is_last = op->done + bytes == message->bytes;

    message->is_torn |=
        op->done != message->taken || (bytes % HVD_NET_PIECE_BYTES != 0 && !is_last);
    memcpy(message->in + op->done, data, bytes);
    message->taken += bytes;
}

static void make_messages(struct message *messages)
{
    for (int i = 0; i < MESSAGES; i++) {
        size_t bytes = 1 + (size_t)random() % (random() % 3 == 0 ? LARGEST : 3000);

        messages[i] =
            (struct message){.out = malloc(bytes), .in = malloc(bytes), .bytes = bytes};
        memset(messages[i].out, i + 1, bytes);
        messages[i].sent = (struct hvd_net_op){.data = messages[i].out, .bytes = bytes};
        messages[i].received =
            (struct hvd_net_op){.data = messages[i].in, .bytes = bytes};
        if (random() % 3 == 0) {
            messages[i].sent.is_device = true;
            messages[i].received.is_device = true;
        } else if (random() % 2 == 0) {
            messages[i].received.data = NULL;
            messages[i].received.take = take;
        }
    }
}

static bool have_arrived(struct message *messages)
{
    bool is_good = true;

    for (int i = 0; i < MESSAGES; i++) {
        is_good = is_good && messages[i].sent.status == 0 &&
                  messages[i].received.status == 0 && !messages[i].is_torn &&
                  memcmp(messages[i].in, messages[i].out, messages[i].bytes) == 0;
        free(messages[i].in);
        free(messages[i].out);
    }
    return is_good;
}

/* Sends, receives and delivers in random order. Packets may overtake each other by a few
 * places. */
static bool exchange(struct wire_end *a, struct wire_end *b)
{
    struct message messages[MESSAGES];
    int sent = 0;
    int received = 0;

    make_messages(messages);
    while (sent < MESSAGES || received < MESSAGES || a->count > 0 || b->count > 0 ||
           wire_fetching != NULL) {
        long choice = random() % 4;
        int reach = a->count < 4 ? a->count : 4;

        if (choice == 0 && sent < MESSAGES) {
            hvd_net_send(a->flow, &messages[sent++].sent);
        } else if (choice == 1 && received < MESSAGES) {
            hvd_net_recv(b->flow, &messages[received++].received);
        } else if (choice == 2 && reach > 0) {
            wire_deliver(a, b, (int)(random() % reach), random() % 2 == 0);
        } else if (b->count > 0) {
            wire_deliver(b, a, 0, false);
        } else if (wire_fetching != NULL) {
            wire_end_fetching(0);
        }
    }
    return have_arrived(messages);
}

/* wraps: the counters wrap around, each at a random moment. */
static void any_order_works(unsigned seed, bool wraps)
{
    static struct wire_end a;
    static struct wire_end b;
    bool is_good = true;

    srandom(seed);
    for (int round = 0; round < 100 && is_good; round++) {
        wire_first_number = wraps ? UINT32_MAX - (uint32_t)(random() % MESSAGES) : 0;
        wire_first_cost = wraps ? UINT32_MAX - (uint32_t)(random() % LARGEST) : 0;
        wire_set_up(&a);
        wire_set_up(&b);
        is_good = exchange(&a, &b) && exchange(&a, &b) && wire_kept == 0;
        wire_tear_down(&a);
        wire_tear_down(&b);
    }
    wire_first_number = wire_first_cost = 0;
    tap_ok(is_good, "messages are the same for any order of posting and of arrival%s",
           wraps ? ", while the counters wrap around" : "");
}

static void window_holds(const char *when)
{
    static struct wire_end a;
    static struct wire_end b;
    static char data[4 * HVD_NET_WINDOW_BYTES];
    static char to[4 * HVD_NET_WINDOW_BYTES];
    struct hvd_net_op send = {.data = data, .bytes = sizeof(data)};
    struct hvd_net_op recv = {.data = to, .bytes = sizeof(to)};

    wire_set_up(&a);
    wire_set_up(&b);
    hvd_net_send(a.flow, &send);
    while (a.count > 0) {
        wire_deliver(&a, &b, 0, true);
    }
    tap_ok(a.most <= HVD_NET_WINDOW_BYTES && send.status == HVD_INPROGRESS &&
               b.count == 0,
           "a sender whose messages are not received stops at the window%s", when);
    hvd_net_recv(b.flow, &recv);
    while (a.count > 0 || b.count > 0) {
        struct wire_end *from = a.count > 0 ? &a : &b;

        wire_deliver(from, from == &a ? &b : &a, 0, false);
    }
    tap_ok(send.status == 0 && recv.status == 0 && wire_kept == 0,
           "the sender finishes when its messages are received%s", when);
    wire_tear_down(&a);
    wire_tear_down(&b);
}

/* A sender whose counters wrap around within a full window. */
static void window_wraps(void)
{
    wire_first_number = UINT32_MAX - 3;
    wire_first_cost = UINT32_MAX - HVD_NET_WINDOW_BYTES / 2;
    window_holds(", while the counters wrap around");
    wire_first_number = wire_first_cost = 0;
}

static void no_fragment_is_a_crumb(void)
{
    static const size_t sizes[] = {HVD_NET_FRAGMENT_BYTES, HVD_NET_FRAGMENT_BYTES + 1,
                                   2 * HVD_NET_FRAGMENT_BYTES + 3000, 262144};
    static char data[262144];
    bool is_good = true;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        static struct wire_end a;
        struct hvd_net_op op = {.data = data, .bytes = sizes[i]};
        size_t least = (sizes[i] + HVD_NET_FRAGMENT_BYTES - 1) / HVD_NET_FRAGMENT_BYTES;

        wire_set_up(&a);
        hvd_net_send(a.flow, &op);
        is_good = is_good && a.count == (int)least;
        for (int j = 0; j < a.count; j++) {
            is_good = is_good && a.packets[j].bytes > sizes[i] / least / 2;
        }
        wire_tear_down(&a);
    }
    tap_ok(is_good,
           "a message is cut into as few fragments as possible, of similar size");
}

/* The receiver fetches a message of device memory after the sender has offered it. The
 * window does not limit such messages. */
static void offers_leave_the_window(void)
{
    static struct wire_end a;
    static struct wire_end b;
    static char data[4 * HVD_NET_WINDOW_BYTES], to[sizeof(data)];
    struct hvd_net_op sends[2], recvs[2];

    wire_set_up(&a);
    wire_set_up(&b);
    for (int i = 0; i < 2; i++) {
        sends[i] = recvs[i] =
            (struct hvd_net_op){.data = data, .bytes = sizeof(data), .is_device = true};
        recvs[i].data = to;
        hvd_net_send(a.flow, &sends[i]);
    }
    tap_ok(a.count == 2 && a.packets[0].bytes == sizeof(data),
           "a message of device memory is one piece, and the window does not limit it");
    wire_deliver(&a, &b, 1, true);
    wire_deliver(&a, &b, 0, true);
    tap_ok(wire_kept == 2, "device memory is not fetched until a receive is posted");
    wire_is_slow = true;
    hvd_net_recv(b.flow, &recvs[0]);
    hvd_net_recv(b.flow, &recvs[1]);
    wire_is_slow = false;
    hvd_net_flow_fail(b.flow, HVD_ERR_PEER);
    tap_ok(recvs[0].status == HVD_INPROGRESS && recvs[1].status == 0 && wire_kept == 0,
           "a failure does not end a receive into which the network still writes");
    wire_end_fetching(HVD_ERR_PEER);
    wire_tear_down(&a);
    wire_tear_down(&b);
}

/* A device buffer must be received into a device buffer of the same length. */
static void offers_are_for_devices(void)
{
    static char data[200];

    for (int i = 0; i < 3; i++) {
        static struct wire_end a;
        static struct wire_end b;
        struct hvd_net_op send = {.data = data, .bytes = 100, .is_device = i > 0};
        struct hvd_net_op recv = {
            .data = data + 100, .bytes = i == 2 ? 99 : 100, .is_device = i != 1};

        wire_set_up(&a);
        wire_set_up(&b);
        hvd_net_send(a.flow, &send);
        wire_deliver(&a, &b, 0, true);
        hvd_net_recv(b.flow, &recv);
        tap_ok(b.failure == HVD_ERR_MISMATCH && wire_kept == 0,
               i == 0   ? "host memory is not received into device memory"
               : i == 1 ? "device memory is not received into host memory"
                        : "device memory of another length is not received");
        wire_tear_down(&a);
        wire_tear_down(&b);
    }
}

/* After the last fetch, the receiver is due to report what it has received, but the
 * report cannot be sent. */
static void fetched_offers_are_not_released(void)
{
    enum {
        COUNT = HVD_NET_WINDOW_BYTES / 4 / HVD_NET_FRAGMENT_COST
    };
    static struct wire_end a, b;
    static struct hvd_net_op sends[COUNT], receives[COUNT];
    static char from, to;

    wire_set_up(&a);
    wire_set_up(&b);
    b.status = HVD_ERR_NET;
    for (int i = 0; i < COUNT; i++) {
        sends[i] = (struct hvd_net_op){.data = &from, .bytes = 1, .is_device = true};
        receives[i] = sends[i];
        receives[i].data = &to;
        hvd_net_send(a.flow, &sends[i]);
        wire_deliver(&a, &b, 0, false);
    }
    for (int i = 0; b.failure == 0 && i < COUNT; i++) {
        hvd_net_recv(b.flow, &receives[i]);
        if (wire_fetching != NULL) {
            wire_end_fetching(0);
        }
    }
    tap_ok(b.failure == HVD_ERR_NET && receives[COUNT - 1].status == 0 && wire_kept == 0,
           "an offer that was fetched is not released a second time");
    wire_tear_down(&a);
    wire_tear_down(&b);
}

/* The peer fails while a receive is under way. */
static void failure_ends_taking(void)
{
    static struct wire_end a;
    static struct wire_end b;
    static char data[4 * HVD_NET_FRAGMENT_BYTES];
    static struct message message;
    size_t before;

    wire_set_up(&a);
    wire_set_up(&b);
    message = (struct message){.in = malloc(sizeof(data)), .bytes = sizeof(data)};
    message.sent = (struct hvd_net_op){.data = data, .bytes = sizeof(data)};
    message.received = (struct hvd_net_op){.take = take, .bytes = sizeof(data)};
    hvd_net_recv(b.flow, &message.received);
    hvd_net_send(a.flow, &message.sent);
    wire_deliver(&a, &b, 0, false);
    before = message.taken;
    hvd_net_flow_fail(b.flow, HVD_ERR_PEER);
    while (a.count > 0) {
        wire_deliver(&a, &b, 0, true);
    }
    tap_ok(before > 0 && message.taken == before &&
               message.received.status == HVD_ERR_PEER && wire_kept == 0,
           "data that arrives after a failure is not received");
    free(message.in);
    wire_tear_down(&a);
    wire_tear_down(&b);
}

static void many_small_ones_are_bounded(void)
{
    static struct wire_end a;
    static struct hvd_net_op ops[2 * ON_THE_WAY];
    static char byte;

    wire_set_up(&a);
    for (int i = 0; i < 2 * ON_THE_WAY; i++) {
        ops[i] = (struct hvd_net_op){.data = &byte, .bytes = 1};
        hvd_net_send(a.flow, &ops[i]);
    }
    tap_ok(
        a.count <= HVD_NET_WINDOW_BYTES / HVD_NET_FRAGMENT_COST,
        "a message of one byte counts as more than one byte in the window (%d under way)",
        a.count);
    wire_tear_down(&a);
}

static void failure_ends_everything(void)
{
    static struct wire_end a;
    static char data[4 * HVD_NET_WINDOW_BYTES];
    struct hvd_net_op ops[3];

    wire_set_up(&a);
    for (int i = 0; i < 3; i++) {
        ops[i] = (struct hvd_net_op){.data = data, .bytes = sizeof(data)};
    }
    hvd_net_send(a.flow, &ops[0]);
    hvd_net_send(a.flow, &ops[1]);
    hvd_net_recv(a.flow, &ops[2]);
    hvd_net_flow_fail(a.flow, HVD_ERR_PEER);
    tap_ok(ops[0].status == HVD_ERR_PEER && ops[1].status == HVD_ERR_PEER &&
               ops[2].status == HVD_ERR_PEER,
           "a failure ends a half-sent message, a waiting one and a receive");
    hvd_net_recv(a.flow, &ops[0]);
    tap_ok(ops[0].status == HVD_ERR_PEER,
           "an operation that starts after a failure fails");
    wire_tear_down(&a);

    wire_set_up(&a);
    a.status = HVD_ERR_PEER;
    ops[0] = (struct hvd_net_op){.data = data, .bytes = sizeof(data)};
    hvd_net_send(a.flow, &ops[0]);
    tap_ok(a.failure == HVD_ERR_PEER, "a network that refuses a fragment is reported");
    hvd_net_flow_fail(a.flow, HVD_ERR_PEER);
    tap_ok(ops[0].status == HVD_ERR_PEER, "the refused operation fails");
    wire_tear_down(&a);
}

int main(void)
{
    any_order_works(tap_seed(11), false);
    any_order_works(tap_seed(12), true);
    window_holds("");
    window_wraps();
    no_fragment_is_a_crumb();
    many_small_ones_are_bounded();
    failure_ends_everything();
    failure_ends_taking();
    offers_leave_the_window();
    offers_are_for_devices();
    fetched_offers_are_not_released();
    return tap_done();
}
