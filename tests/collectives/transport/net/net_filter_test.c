/* SPDX-License-Identifier: Apache-2.0 */
/* The filter of connections, on real sockets: who is on its list gets in, others are not even
 * answered. And who is put on it. */
#include "collectives/transport/net/net_filter.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/tap.h"

enum {
    LET_IN_MS = 20000,
    DROPPED_MS = 300, /* what is let in on this host is let in at once */
    MANY = 5000,
    FULL_IPV6 = 16,
    FULL = FULL_IPV6 + 256,
};

static struct hvd_net_host_address address_of(const char *text)
{
    struct hvd_net_host_address address = {{[10] = 0xff, [11] = 0xff}};

    if (inet_pton(AF_INET, text, address.bytes + 12) != 1 &&
        inet_pton(AF_INET6, text, address.bytes) != 1) {
        printf("Bail out! %s is no address\n", text);
        exit(1);
    }
    return address;
}

/* Of up to 4 texts, separated by spaces. */
static struct hvd_net_host_addresses list_of(const char *texts)
{
    struct hvd_net_host_addresses out = {.list = calloc(4, sizeof(*out.list))};
    char copy[256], *rest = copy, *text;

    snprintf(copy, sizeof(copy), "%s", texts);
    while ((text = strtok_r(rest, " ", &rest)) != NULL) {
        out.list[out.count++] = address_of(text);
    }
    return out;
}

/* A socket bound to an address of this host; -1 when there is no such. */
static int bound(const char *text, struct sockaddr_storage *name, socklen_t *bytes)
{
    bool is_ipv6 = strchr(text, ':') != NULL;
    struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)name;
    struct sockaddr_in *ipv4 = (struct sockaddr_in *)name;
    int fd = socket(is_ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    memset(name, 0, sizeof(*name));
    name->ss_family = is_ipv6 ? AF_INET6 : AF_INET;
    inet_pton(name->ss_family, text,
              is_ipv6 ? (void *)&ipv6->sin6_addr : (void *)&ipv4->sin_addr);
    *bytes = is_ipv6 ? sizeof(*ipv6) : sizeof(*ipv4);
    if (fd >= 0 && (bind(fd, (struct sockaddr *)name, *bytes) != 0 ||
                    getsockname(fd, (struct sockaddr *)name, bytes) != 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool is_ready(int fd, short events, int timeout_ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = events};

    return poll(&poll_fd, 1, timeout_ms) == 1 && (poll_fd.revents & events) != 0;
}

static bool passes_data(int from, int listener)
{
    int to = is_ready(listener, POLLIN, LET_IN_MS) ? accept(listener, NULL, NULL) : -1;
    char byte = 7;
    bool passes = to >= 0 && send(from, &byte, 1, 0) == 1 &&
                  is_ready(to, POLLIN, LET_IN_MS) && recv(to, &byte, 1, 0) == 1 &&
                  send(to, &byte, 1, 0) == 1 && is_ready(from, POLLIN, LET_IN_MS);

    close(to);
    return passes;
}

/* Whether a host at `from` gets in to one that listens at `at` and lets in `list`, which is used
 * up. */
static bool gets_in(struct hvd_net_host_addresses list, const char *at, const char *from,
                    bool should)
{
    struct sockaddr_storage name, own;
    socklen_t bytes, own_bytes;
    int listener = bound(at, &name, &bytes), peer = bound(from, &own, &own_bytes);
    struct sock_fprog filter = {0};
    bool is_in = false;

    if (hvd_net_filter_make(&list, &filter) == 0 && listen(listener, 4) == 0 &&
        hvd_net_filter_attach(&filter, listener)) {
        connect(peer, (struct sockaddr *)&name, bytes);
        is_in = is_ready(peer, POLLOUT, should ? LET_IN_MS : DROPPED_MS) &&
                passes_data(peer, listener);
    } else {
        tap_note("no filter on a socket at %s: %m", at);
        is_in = !should;
    }
    close(peer);
    close(listener);
    free(filter.filter);
    hvd_net_host_addresses_finish(&list);
    return is_in;
}

static struct hvd_net_host_addresses many(void)
{
    struct hvd_net_host_addresses out = {.list = calloc(MANY, sizeof(*out.list)),
                                         .count = MANY};

    for (unsigned i = 0; i < MANY; i++) {
        char text[INET_ADDRSTRLEN];

        snprintf(text, sizeof(text), "127.3.%u.%u", i / 250, i % 250);
        out.list[i] = address_of(text);
    }
    return out;
}

/* As many as a filter has room for at most, which a sanitizer watches. */
static void test_room(void)
{
    struct hvd_net_host_addresses all = {.list = calloc(FULL, sizeof(*all.list)),
                                         .count = FULL};
    struct sock_fprog filter = {0};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool is_taken;

    for (unsigned i = 0; i < FULL; i++) {
        char text[INET6_ADDRSTRLEN];

        snprintf(text, sizeof(text), i < FULL_IPV6 ? "fd00::%x" : "10.0.0.%u",
                 i < FULL_IPV6 ? i : i - FULL_IPV6);
        all.list[i] = address_of(text);
    }
    is_taken =
        hvd_net_filter_make(&all, &filter) == 0 && hvd_net_filter_attach(&filter, fd);
    tap_ok(is_taken, "the kernel takes the longest filter (%d steps)", filter.len);
    close(fd);
    free(filter.filter);
    hvd_net_host_addresses_finish(&all);
}

static void test_sockets(void)
{
    struct sockaddr_storage name;
    socklen_t bytes;
    int ipv6 = bound("::1", &name, &bytes);

    tap_ok(gets_in(list_of("127.0.0.9 127.0.0.3"), "127.0.0.1", "127.0.0.3", true),
           "who is on the list gets in, and data goes both ways");
    tap_ok(!gets_in(list_of("127.0.0.9 127.0.0.3"), "127.0.0.1", "127.0.0.2", false),
           "who is not is not answered");
    tap_ok(!gets_in(list_of(""), "127.0.0.1", "127.0.0.1", false),
           "an empty list lets nobody in");
    tap_ok(gets_in(many(), "127.0.0.1", "127.3.19.249", true),
           "of more addresses than a filter has room for, each gets in");
    tap_ok(!gets_in(many(), "127.0.0.1", "127.4.0.1", false),
           "but not who is far from them");
    if (ipv6 < 0) {
        tap_ok(true, "IPv6 # SKIP not here");
        return;
    }
    close(ipv6);
    tap_ok(gets_in(list_of("fd00::1 ::1 10.0.0.1"), "::1", "::1", true) &&
               !gets_in(list_of("fd00::1 ::2 127.0.0.1"), "::1", "::1", false),
           "the same with IPv6");
}

static size_t count_added(const char *own, const char *other, bool is_shared)
{
    struct hvd_net_host_addresses all = {0}, mine = list_of(own), theirs = list_of(other);
    size_t count;

    mine.network = 5;
    theirs.network = is_shared ? 5 : 6;
    hvd_net_host_addresses_add(&all, &mine, &theirs);
    count = all.count;
    hvd_net_host_addresses_finish(&all);
    hvd_net_host_addresses_finish(&mine);
    hvd_net_host_addresses_finish(&theirs);
    return count;
}

static void test_lists(void)
{
    struct hvd_net_host_addresses own = {0}, again = {0};
    bool has_loopback = false;

    tap_ok(count_added("127.0.0.1 ::1 10.0.0.1 172.17.0.1",
                       "127.0.0.1 ::1 10.0.0.2 172.17.0.1", false) == 1,
           "addresses that this node has too, as loopback and docker0, are not let in");
    tap_ok(count_added("127.0.0.1 10.0.0.1", "127.0.0.1 10.0.0.1", true) == 2,
           "they are when the other node is played on this one's network");
    hvd_net_host_addresses_find(&own);
    for (size_t i = 0; i < own.count; i++) {
        struct hvd_net_host_address loopback = address_of("127.0.0.1");

        has_loopback |= memcmp(&own.list[i], &loopback, sizeof(loopback)) == 0;
    }
    tap_ok(has_loopback, "this host's addresses are found (%zu)", own.count);
    hvd_net_host_addresses_find(&again);
    tap_ok(own.network != 0 && own.network == again.network, "and its network");
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 || unshare(CLONE_NEWNET) == 0) {
        hvd_net_host_addresses_finish(&again);
        hvd_net_host_addresses_find(&again);
        tap_ok(own.network != again.network, "another namespace is another network");
    } else {
        tap_ok(true, "another namespace is another network # SKIP cannot make one");
    }
    hvd_net_host_addresses_finish(&own);
    hvd_net_host_addresses_finish(&again);
}

int main(void)
{
    test_sockets();
    test_room();
    test_lists();
    return tap_done();
}
