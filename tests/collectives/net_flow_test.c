/* SPDX-License-Identifier: Apache-2.0 */
/* Order, matching and window of a channel, over a network that is a list in this process: it
 * delivers when and in which order the test wants. */
#include "collectives/net/net_flow.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

enum {
    ON_THE_WAY = 8192,
    MESSAGES = 40,
    LARGEST = 400000
};

struct packet {
    struct hvd_net_header header;
    size_t bytes;
    char *data;
};

struct end {
    struct hvd_flow *flow;
    struct hvd_net_pool pool;
    struct packet packets[ON_THE_WAY]; /* sent by this end, not yet delivered */
    int count;
    size_t most; /* bytes of them, at most */
    bool is_down;
};

static int put_packet(void *peer, struct hvd_net_fragment *fragment)
{
    struct end *end = peer;
    struct packet *packet = &end->packets[end->count];
    size_t bytes = 0;

    if (end->is_down) {
        return HVD_ERR_PEER;
    }
    packet->header = fragment->header;
    packet->bytes = fragment->bytes;
    packet->data = malloc(fragment->bytes + 1);
    if (fragment->bytes > 0) {
        memcpy(packet->data, fragment->data, fragment->bytes);
    }
    end->count++;
    for (int i = 0; i < end->count; i++) {
        bytes += end->packets[i].bytes;
    }
    end->most = bytes > end->most ? bytes : end->most;
    return 0;
}

static void set_up(struct end *end)
{
    const struct hvd_flow_link link = {
        .send = put_packet, .peer = end, .source = 0, .pool = &end->pool};

    memset(end, 0, sizeof(*end));
    if (hvd_flow_create(&link, 3, &end->flow) != 0) {
        abort();
    }
}

static void tear_down(struct end *end)
{
    hvd_flow_destroy(end->flow);
    hvd_net_pool_finish(&end->pool);
    for (int i = 0; i < end->count; i++) {
        free(end->packets[i].data);
    }
}

static int kept; /* data that the receiver has not released yet */

static void release(void *context, void *data)
{
    (void)context;
    free(data);
    kept--;
}

/* Delivers packet number `index` of `from`; lends its data or not. */
static void deliver(struct end *from, struct end *to, int index, bool is_lent)
{
    struct packet packet = from->packets[index];
    struct hvd_flow_arrival arrival = {
        .header = &packet.header,
        .data = packet.data,
        .bytes = packet.bytes,
        .release = is_lent ? release : NULL,
    };

    from->count--;
    memmove(&from->packets[index], &from->packets[index + 1],
            (size_t)(from->count - index) * sizeof(packet));
    if (hvd_flow_arrived(to->flow, &arrival) == HVD_INPROGRESS) {
        kept++;
    } else {
        free(packet.data);
    }
}

struct message {
    struct hvd_net_op sent;
    struct hvd_net_op received; /* by take, it is found by this */
    char *out;
    char *in;
    size_t bytes;
    size_t taken; /* bytes, as take has seen them */
    bool is_torn; /* a piece did not follow the one before, or cut an element */
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
        messages[i].sent = (struct hvd_net_op){
            .status = HVD_INPROGRESS, .data = messages[i].out, .bytes = bytes};
        messages[i].received = (struct hvd_net_op){
            .status = HVD_INPROGRESS, .data = messages[i].in, .bytes = bytes};
        if (random() % 2 == 0) {
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

/* Sends, receives and deliveries in random order, packets swapped within a few places. */
static bool exchange(struct end *a, struct end *b)
{
    struct message messages[MESSAGES];
    int sent = 0;
    int received = 0;

    make_messages(messages);
    while (sent < MESSAGES || received < MESSAGES || a->count > 0 || b->count > 0) {
        long choice = random() % 4;
        int reach = a->count < 4 ? a->count : 4;

        if (choice == 0 && sent < MESSAGES) {
            hvd_flow_send(a->flow, &messages[sent++].sent);
        } else if (choice == 1 && received < MESSAGES) {
            hvd_flow_recv(b->flow, &messages[received++].received);
        } else if (choice == 2 && reach > 0) {
            deliver(a, b, (int)(random() % reach), random() % 2 == 0);
        } else if (b->count > 0) {
            deliver(b, a, 0, false);
        }
    }
    return have_arrived(messages);
}

static void any_order_works(unsigned seed)
{
    static struct end a;
    static struct end b;
    bool is_good = true;

    srandom(seed);
    for (int round = 0; round < 100 && is_good; round++) {
        set_up(&a);
        set_up(&b);
        is_good = exchange(&a, &b) && exchange(&a, &b) && kept == 0;
        tear_down(&a);
        tear_down(&b);
    }
    tap_ok(is_good, "any order of posting and of arrival gives the same messages");
}

static void window_holds(void)
{
    static struct end a;
    static struct end b;
    static char data[4 * HVD_NET_WINDOW_BYTES];
    static char to[4 * HVD_NET_WINDOW_BYTES];
    struct hvd_net_op send = {
        .status = HVD_INPROGRESS, .data = data, .bytes = sizeof(data)};
    struct hvd_net_op recv = {.status = HVD_INPROGRESS, .data = to, .bytes = sizeof(to)};

    set_up(&a);
    set_up(&b);
    hvd_flow_send(a.flow, &send);
    while (a.count > 0) {
        deliver(&a, &b, 0, true);
    }
    tap_ok(a.most <= HVD_NET_WINDOW_BYTES && send.status == HVD_INPROGRESS &&
               b.count == 0,
           "a sender whose messages nobody takes stops at the window");
    hvd_flow_recv(b.flow, &recv);
    while (a.count > 0 || b.count > 0) {
        struct end *from = a.count > 0 ? &a : &b;

        deliver(from, from == &a ? &b : &a, 0, false);
    }
    tap_ok(send.status == 0 && recv.status == 0 && kept == 0,
           "and goes on to the end when they are taken");
    tear_down(&a);
    tear_down(&b);
}

static void no_fragment_is_a_crumb(void)
{
    static const size_t sizes[] = {HVD_NET_FRAGMENT_BYTES, HVD_NET_FRAGMENT_BYTES + 1,
                                   2 * HVD_NET_FRAGMENT_BYTES + 3000, 262144};
    static char data[262144];
    bool is_good = true;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        static struct end a;
        struct hvd_net_op op = {
            .status = HVD_INPROGRESS, .data = data, .bytes = sizes[i]};
        size_t least = (sizes[i] + HVD_NET_FRAGMENT_BYTES - 1) / HVD_NET_FRAGMENT_BYTES;

        set_up(&a);
        hvd_flow_send(a.flow, &op);
        is_good = is_good && a.count == (int)least;
        for (int j = 0; j < a.count; j++) {
            is_good = is_good && a.packets[j].bytes > sizes[i] / least / 2;
        }
        tear_down(&a);
    }
    tap_ok(is_good, "a message is cut into as few fragments as it takes, of like size");
}

/* A receive that is under way, or posted, when the peer fails. */
static void failure_ends_taking(void)
{
    static struct end a;
    static struct end b;
    static char data[4 * HVD_NET_FRAGMENT_BYTES];
    static struct message message;
    size_t before;

    set_up(&a);
    set_up(&b);
    message = (struct message){.in = malloc(sizeof(data)), .bytes = sizeof(data)};
    message.sent = (struct hvd_net_op){
        .status = HVD_INPROGRESS, .data = data, .bytes = sizeof(data)};
    message.received = (struct hvd_net_op){
        .status = HVD_INPROGRESS, .take = take, .bytes = sizeof(data)};
    hvd_flow_recv(b.flow, &message.received);
    hvd_flow_send(a.flow, &message.sent);
    deliver(&a, &b, 0, false);
    before = message.taken;
    hvd_flow_fail(b.flow, HVD_ERR_PEER);
    while (a.count > 0) {
        deliver(&a, &b, 0, true);
    }
    tap_ok(before > 0 && message.taken == before &&
               message.received.status == HVD_ERR_PEER && kept == 0,
           "what comes after a failure is not taken");
    free(message.in);
    tear_down(&a);
    tear_down(&b);
}

static void many_small_ones_are_bounded(void)
{
    static struct end a;
    static struct hvd_net_op ops[2 * ON_THE_WAY];
    static char byte;

    set_up(&a);
    for (int i = 0; i < 2 * ON_THE_WAY; i++) {
        ops[i] = (struct hvd_net_op){.status = HVD_INPROGRESS, .data = &byte, .bytes = 1};
        hvd_flow_send(a.flow, &ops[i]);
    }
    tap_ok(a.count <= HVD_NET_WINDOW_BYTES / HVD_NET_FRAGMENT_COST,
           "one-byte messages count for more than their byte (%d under way)", a.count);
    tear_down(&a);
}

static void failure_ends_everything(void)
{
    static struct end a;
    static char data[4 * HVD_NET_WINDOW_BYTES];
    struct hvd_net_op ops[3];

    set_up(&a);
    for (int i = 0; i < 3; i++) {
        ops[i] = (struct hvd_net_op){
            .status = HVD_INPROGRESS, .data = data, .bytes = sizeof(data)};
    }
    hvd_flow_send(a.flow, &ops[0]);
    hvd_flow_send(a.flow, &ops[1]);
    hvd_flow_recv(a.flow, &ops[2]);
    hvd_flow_fail(a.flow, HVD_ERR_PEER);
    tap_ok(ops[0].status == HVD_ERR_PEER && ops[1].status == HVD_ERR_PEER &&
               ops[2].status == HVD_ERR_PEER,
           "a failure ends what is half sent, what waits, and what is received");
    ops[0].status = HVD_INPROGRESS;
    hvd_flow_recv(a.flow, &ops[0]);
    tap_ok(ops[0].status == HVD_ERR_PEER, "and what comes later");
    tear_down(&a);

    set_up(&a);
    a.is_down = true;
    ops[0] = (struct hvd_net_op){
        .status = HVD_INPROGRESS, .data = data, .bytes = sizeof(data)};
    tap_ok(hvd_flow_send(a.flow, &ops[0]) == HVD_ERR_PEER,
           "a network that takes nothing is reported");
    hvd_flow_fail(a.flow, HVD_ERR_PEER);
    tap_ok(ops[0].status == HVD_ERR_PEER, "and ends the operation");
    tear_down(&a);
}

int main(void)
{
    any_order_works(tap_seed(11));
    window_holds();
    no_fragment_is_a_crumb();
    many_small_ones_are_bounded();
    failure_ends_everything();
    failure_ends_taking();
    return tap_done();
}
