/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of a channel, and a stranger between them who reads, replays and changes
 * bytes. */
#include "pmix_boot/rendezvous/channel.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pmix_boot/rendezvous/address.h"
#include "tests/tap.h"

/* A connection through the test: bytes that an end has sent wait in a buffer until the
 * test passes them on. */
struct wire {
    struct hvd_channel *ends[2];
    int inner[2];
};

static void open_wire(struct wire *wire, const unsigned char *rank_key,
                      const unsigned char *service_key)
{
    const unsigned char *keys[] = {rank_key, service_key};
    const enum hvd_channel_side sides[] = {HVD_CHANNEL_RANK, HVD_CHANNEL_SERVICE};

    for (int i = 0; i < 2; i++) {
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0 ||
            hvd_channel_create(pair[0], sides[i], keys[i], &wire->ends[i]) != 0) {
            abort();
        }
        wire->inner[i] = pair[1];
        (void)hvd_channel_progress(wire->ends[i]); /* sends this end's header */
    }
}

static void close_wire(struct wire *wire)
{
    for (int i = 0; i < 2; i++) {
        hvd_channel_destroy(wire->ends[i]);
        close(wire->inner[i]);
    }
}

/* Reads the bytes that end `from` has sent. */
static size_t take(struct wire *wire, int from, unsigned char *bytes, size_t room)
{
    ssize_t got = read(wire->inner[from], bytes, room);

    return got > 0 ? (size_t)got : 0;
}

static void give(struct wire *wire, int to, const unsigned char *bytes, size_t count)
{
    if (write(wire->inner[to], bytes, count) != (ssize_t)count) {
        abort();
    }
}

/* Passes on the bytes that end `from` has sent. Returns how many. */
static size_t pass(struct wire *wire, int from)
{
    static unsigned char bytes[1 << 20];
    size_t count = take(wire, from, bytes, sizeof(bytes));

    if (count > 0) {
        give(wire, 1 - from, bytes, count);
    }
    return count;
}

static void pass_all(struct wire *wire)
{
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < 2; i++) {
            pass(wire, i);
            (void)hvd_channel_progress(wire->ends[1 - i]);
        }
    }
}

static bool receives(struct hvd_channel *channel, uint32_t type, const char *text)
{
    struct hvd_channel_message message;

    return hvd_channel_next(channel, &message) == 0 && message.type == type &&
           message.bytes == strlen(text) &&
           memcmp(message.data, text, message.bytes) == 0;
}

static void test_talk(const unsigned char *key)
{
    struct wire wire;
    struct hvd_channel_message message;

    open_wire(&wire, key, key);
    tap_ok(hvd_channel_send(wire.ends[0], 1, "early", 5) == HVD_ERR_STATE,
           "nothing is sent to a peer that has not proved that it has the key");
    pass_all(&wire);
    tap_ok(hvd_channel_is_open(wire.ends[0]) && hvd_channel_is_open(wire.ends[1]),
           "both ends with the key open the channel");
    hvd_channel_send(wire.ends[0], 7, "to the service", 14);
    hvd_channel_send(wire.ends[0], 8, "", 0);
    hvd_channel_send(wire.ends[1], 9, "to the rank", 11);
    pass_all(&wire);
    tap_ok(receives(wire.ends[1], 7, "to the service") && receives(wire.ends[1], 8, "") &&
               receives(wire.ends[0], 9, "to the rank"),
           "messages arrive whole and in order");
    tap_ok(hvd_channel_next(wire.ends[1], &message) == HVD_INPROGRESS,
           "no further messages arrive");
    close(wire.inner[0]);
    wire.inner[0] = open("/dev/null", O_RDWR);
    tap_ok(hvd_channel_progress(wire.ends[0]) == HVD_ERR_PEER,
           "the other end's closing is noticed");
    close_wire(&wire);
}

static void test_long(const unsigned char *key)
{
    const size_t bytes = 3000000;
    unsigned char *data = malloc(bytes);
    struct hvd_channel_message message = {0};
    struct wire wire;
    int status = HVD_INPROGRESS;

    for (size_t i = 0; i < bytes; i++) {
        data[i] = (unsigned char)(i * 2654435761u >> 13);
    }
    open_wire(&wire, key, key);
    pass_all(&wire);
    hvd_channel_send(wire.ends[1], 1, data, bytes);
    for (int i = 0; i < 10000 && status == HVD_INPROGRESS; i++) {
        (void)hvd_channel_progress(wire.ends[1]);
        pass(&wire, 1);
        (void)hvd_channel_progress(wire.ends[0]);
        status = hvd_channel_next(wire.ends[0], &message);
    }
    tap_ok(status == 0 && message.bytes == bytes &&
               memcmp(message.data, data, bytes) == 0,
           "a message larger than the socket's buffer arrives");
    close_wire(&wire);
    free(data);
}

/* A rank must know whether the service has accepted it: the service closes connections
 * without proof when it has too many. */
static void test_acceptance(const unsigned char *key)
{
    static unsigned char card[6000];
    struct hvd_channel_message message;
    struct wire wire;

    memset(card, 7, sizeof(card));
    open_wire(&wire, key, key);
    pass(&wire, 0);
    (void)hvd_channel_progress(wire.ends[1]);
    pass(&wire, 1);
    (void)hvd_channel_progress(wire.ends[0]);
    tap_ok(!hvd_channel_is_open(wire.ends[0]) &&
               hvd_channel_send(wire.ends[0], 1, card, sizeof(card)) == HVD_ERR_STATE,
           "a rank whose proof the service has not read cannot send");
    pass(&wire, 0);
    (void)hvd_channel_progress(wire.ends[1]);
    pass(&wire, 1);
    (void)hvd_channel_progress(wire.ends[0]);
    tap_ok(hvd_channel_send(wire.ends[0], 1, card, sizeof(card)) == 0,
           "a rank that the service has accepted can send");
    pass(&wire, 0);
    tap_ok(hvd_channel_progress(wire.ends[1]) == 0 &&
               hvd_channel_next(wire.ends[1], &message) == 0 &&
               message.bytes == sizeof(card) &&
               memcmp(message.data, card, sizeof(card)) == 0,
           "a long message of an accepted rank arrives, unlike one of a stranger");
    close_wire(&wire);

    open_wire(&wire, key, key);
    pass(&wire, 0);
    (void)hvd_channel_progress(wire.ends[1]);
    pass(&wire, 1);
    (void)shutdown(wire.inner[0], SHUT_WR);
    tap_ok(hvd_channel_progress(wire.ends[0]) == HVD_ERR_PEER &&
               !hvd_channel_is_open(wire.ends[0]),
           "a rank notices that the service has closed without accepting it");
    close_wire(&wire);
}

static void test_strangers(const unsigned char *key, const unsigned char *other)
{
    unsigned char recorded[4096];
    unsigned char noise[1024];
    size_t count = 0;
    struct wire wire;

    open_wire(&wire, other, key);
    pass_all(&wire);
    tap_ok(!hvd_channel_is_open(wire.ends[1]),
           "a rank without the key does not open the channel");
    tap_ok(!hvd_channel_is_open(wire.ends[0]) &&
               hvd_channel_progress(wire.ends[0]) == HVD_ERR_NET,
           "a rank without the key does not accept the service");
    close_wire(&wire);

    open_wire(&wire, key, key);
    for (int round = 0; round < 3; round++) {
        size_t got = take(&wire, 0, recorded + count, sizeof(recorded) - count);

        give(&wire, 1, recorded + count, got);
        count += got;
        (void)hvd_channel_progress(wire.ends[1]);
        pass(&wire, 1);
        (void)hvd_channel_progress(wire.ends[0]);
    }
    tap_ok(hvd_channel_is_open(wire.ends[1]), "a rank's bytes open the channel once");
    close_wire(&wire);
    open_wire(&wire, key, key);
    give(&wire, 1, recorded, count);
    tap_ok(hvd_channel_progress(wire.ends[1]) == HVD_ERR_NET &&
               !hvd_channel_is_open(wire.ends[1]),
           "replayed bytes do not open the channel");
    close_wire(&wire);

    open_wire(&wire, key, key);
    count = take(&wire, 1, recorded, sizeof(recorded));
    give(&wire, 1, recorded, count);
    (void)hvd_channel_progress(wire.ends[1]);
    count = take(&wire, 1, recorded, sizeof(recorded));
    give(&wire, 1, recorded, count);
    (void)hvd_channel_progress(wire.ends[1]);
    tap_ok(!hvd_channel_is_open(wire.ends[1]),
           "the service's own bytes, sent back, do not open the channel");
    close_wire(&wire);

    memset(noise, 0xff, sizeof(noise));
    open_wire(&wire, key, key);
    give(&wire, 1, noise, sizeof(noise));
    tap_ok(hvd_channel_progress(wire.ends[1]) == HVD_ERR_NET,
           "a stranger cannot make the service store much");
    close_wire(&wire);
}

/* Changes each bit of a sealed message. */
static void test_changes(const unsigned char *key, unsigned seed)
{
    bool is_refused = true;

    srand(seed);
    for (int i = 0; i < 200; i++) {
        unsigned char bytes[256];
        struct hvd_channel_message message;
        struct wire wire;
        size_t count, at;

        open_wire(&wire, key, key);
        pass_all(&wire);
        hvd_channel_send(wire.ends[0], 1, "a message of some bytes", 23);
        count = take(&wire, 0, bytes, sizeof(bytes));
        /* The length is not changed: with another one, the reader waits for more. */
        at = 4 + (size_t)rand() % (count - 4);
        bytes[at] ^= (unsigned char)(1 << rand() % 8);
        give(&wire, 1, bytes, count);
        (void)hvd_channel_progress(wire.ends[1]);
        is_refused =
            is_refused && hvd_channel_next(wire.ends[1], &message) == HVD_ERR_NET;
        close_wire(&wire);
    }
    tap_ok(is_refused, "a changed message is rejected");
}

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static void test_addresses(void)
{
    static const char *const bad[] = {
        "",
        KEY,
        ":" KEY,
        "host:" KEY,
        "host::" KEY,
        ":1:" KEY,
        "host:x:" KEY,
        "host:1:00",
        "host:1:" KEY "0",
        "host:1:" KEY ":",
        "host:1:" KEY "x",
    };
    struct hvd_rendezvous_address address;

    tap_ok(hvd_rendezvous_address_parse("fe80::1:4711:" KEY, &address, NULL) == 0 &&
               strcmp(address.host, "fe80::1") == 0 &&
               strcmp(address.port, "4711") == 0 && address.key[1] == 0x11 &&
               address.key[31] == 0xff,
           "an address is read from its end");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct hvd_error err = {0};

        tap_ok(hvd_rendezvous_address_parse(bad[i], &address, &err) == HVD_ERR_ARG &&
                   strstr(err.text, "0011") == NULL,
               "\"%.16s...\" is not an address, and the error shows no key", bad[i]);
    }
}

int main(void)
{
    unsigned char key[HVD_CHANNEL_KEY_BYTES] = {1, 2, 3};
    unsigned char other[HVD_CHANNEL_KEY_BYTES] = {1, 2, 4};

    test_talk(key);
    test_long(key);
    test_acceptance(key);
    test_strangers(key, other);
    test_changes(key, tap_seed(1));
    test_addresses();
    return tap_done();
}
