/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets listen and connect within a time limit; data arrives whole, or the error says
 * why not. */
#include "pmix_boot/sock/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "gpu_binding/base/clock.h"
#include "tests/tap.h"

static void open_wire(int ends[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
        printf("Bail out! socketpair: %s\n", strerror(errno));
        exit(1);
    }
}

static void test_whole(void)
{
    char text[8] = "";
    int ends[2];

    open_wire(ends);
    tap_ok(hvd_socket_send(ends[0], "abc", 3) == 0 &&
               hvd_socket_send(ends[0], "defg", 5) == 0 &&
               hvd_socket_receive(ends[1], text, sizeof(text)) == 0 &&
               strcmp(text, "abcdefg") == 0,
           "data that arrives in parts is received whole");
    close(ends[0]);
    close(ends[1]);
}

static void test_closed(void)
{
    char text[8];
    int ends[2];

    open_wire(ends);
    hvd_socket_send(ends[0], "abc", 3);
    close(ends[0]);
    errno = EBADF;
    tap_ok(hvd_socket_receive(ends[1], text, sizeof(text)) == HVD_ERR_SYS && errno == 0,
           "an end that closed half-way gives errno 0");
    tap_ok(hvd_socket_send(ends[1], "abc", 3) == HVD_ERR_SYS && errno == EPIPE,
           "sending to it fails without a signal");
    close(ends[1]);
}

static void test_limit(void)
{
    const struct timeval limit = {.tv_usec = 1000};
    char text[8];
    int ends[2];

    open_wire(ends);
    setsockopt(ends[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    tap_ok(hvd_socket_receive(ends[1], text, sizeof(text)) == HVD_ERR_SYS &&
               errno == EAGAIN,
           "a time limit that passed gives EAGAIN");
    close(ends[0]);
    close(ends[1]);
}

static int option_of(int fd, int level, int name)
{
    int value = -1;
    socklen_t length = sizeof(value);

    getsockopt(fd, level, name, &value, &length);
    return value;
}

/* Returns whether the options are set that every connection has on both ends. */
static bool is_tuned(int fd)
{
    return (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0 &&
           (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0 &&
           option_of(fd, SOL_SOCKET, SO_KEEPALIVE) == 1 &&
           option_of(fd, IPPROTO_TCP, TCP_NODELAY) == 1 &&
           option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT) == HVD_SOCKET_DEAD_AFTER_MS;
}

/* Returns the seconds after which an idle connection to a silent host ends. */
static int seconds_of_silence(int fd)
{
    const int limit_ms = option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT);

    return limit_ms > 0 ? limit_ms / 1000
                        : option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE) +
                              option_of(fd, IPPROTO_TCP, TCP_KEEPINTVL) *
                                  option_of(fd, IPPROTO_TCP, TCP_KEEPCNT);
}

static bool has_port(int fd, const struct hvd_ip *ip, uint16_t port)
{
    struct sockaddr_in address = {0};
    socklen_t length = sizeof(address);

    return getsockname(fd, (struct sockaddr *)&address, &length) == 0 &&
           memcmp(&address.sin_addr, ip->bytes, 4) == 0 &&
           ntohs(address.sin_port) == port;
}

static void test_connect(const struct hvd_socket_address *place, const char *where)
{
    struct hvd_error err = {0};
    char text[16];
    uint16_t port = 0;
    int listening = -1;
    int fd, other;

    if (!tap_ok(hvd_socket_listen_tcp(place, &listening, &port, &err) == 0 && port > 0,
                "a socket listens %s", where)) {
        return;
    }
    tap_ok(hvd_socket_accept(listening) < 0 && errno == EAGAIN, "accept does not block");
    snprintf(text, sizeof(text), "%u", (unsigned)port);
    fd = hvd_socket_connect_host("127.0.0.1", text, hvd_clock_ms() + 5000, &err);
    tap_ok(fd >= 0, "its port can be reached %s", err.text);
    tap_ok(hvd_socket_wait(listening, POLLIN, hvd_clock_ms() + 5000),
           "the listening socket becomes readable");
    other = hvd_socket_accept(listening);
    tap_ok(is_tuned(fd) && is_tuned(other), "both ends notice a host that vanishes");
    tap_ok(!hvd_socket_wait(other, POLLIN, hvd_clock_ms() + 20),
           "waiting ends at its deadline");
    hvd_socket_be_patient(other);
    tap_ok(seconds_of_silence(fd) < 5 && seconds_of_silence(other) >= 30,
           "a patient end takes a host that is silent for 30 s for a busy one");
    close(fd);
    close(other);
    close(listening);
}

static void test_nobody(void)
{
    struct hvd_error err = {0};
    uint16_t port = 0;
    int listening = -1;
    char text[16];
    int64_t begin_ms = hvd_clock_ms();

    hvd_socket_listen_tcp(&hvd_socket_loopback, &listening, &port, NULL);
    snprintf(text, sizeof(text), "%u", (unsigned)port);
    close(listening);
    tap_ok(hvd_socket_connect_host("127.0.0.1", text, begin_ms + 1000, &err) ==
                   HVD_ERR_NET &&
               strstr(err.text, "Connection refused") != NULL,
           "a port on which nobody listens is an error: %s", err.text);
    tap_ok(hvd_clock_ms() - begin_ms < 5000, "the error comes within the time limit");
    tap_ok(hvd_socket_connect_host("no.such.host.invalid", "1", begin_ms, &err) ==
                   HVD_ERR_NET &&
               strstr(err.text, "no.such.host.invalid") != NULL,
           "an unknown host is an error: %s", err.text);
}

static void ignore_alarm(int number)
{
    (void)number;
}

/* The queue of the server is full, so connections neither succeed nor fail. */
static void test_signal(void)
{
    const struct itimerval often = {{0, 20000}, {0, 20000}}, never = {0};
    const struct sigaction action = {.sa_handler = ignore_alarm};
    struct hvd_error err = {0};
    char text[8];
    uint16_t port = 0;
    int server, clients[8], fd;

    hvd_socket_listen_tcp(&hvd_socket_loopback, &server, &port, NULL);
    listen(server, 0);
    for (int i = 0; i < 8; i++) {
        clients[i] = hvd_socket_connect_tcp(&hvd_socket_loopback.addresses[0], port);
    }
    snprintf(text, sizeof(text), "%u", (unsigned)port);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    fd = hvd_socket_connect_host("127.0.0.1", text, hvd_clock_ms() + 300, &err);
    setitimer(ITIMER_REAL, &never, NULL);
    tap_ok(fd == HVD_ERR_NET && strstr(err.text, "timed out") != NULL,
           "a signal does not end the wait for a connection: %s", err.text);
    for (int i = 0; i < 8; i++) {
        close(clients[i]);
    }
    close(server);
}

static void test_path(void)
{
    struct hvd_error err = {0};
    char directory[] = "/tmp/hvd-test.XXXXXX";
    char path[64];
    char longer[200];
    int listening = -1;
    int fd, other;

    snprintf(path, sizeof(path), "%s/ranks", mkdtemp(directory));
    tap_ok(hvd_socket_listen_path(path, &listening, &err) == 0,
           "a socket listens at a path %s", err.text);
    fd = hvd_socket_connect_host(path, "0", hvd_clock_ms() + 5000, &err);
    other = hvd_socket_accept(listening);
    tap_ok(fd >= 0 && other >= 0 && hvd_socket_send(fd, path, sizeof(path)) == 0 &&
               hvd_socket_receive(other, longer, sizeof(path)) == 0,
           "data arrives through it");
    tap_ok(hvd_socket_listen_path(path, &other, &err) == HVD_ERR_SYS &&
               strstr(err.text, path) != NULL &&
               strstr(err.text, "Address already in use") != NULL,
           "a path that exists is rejected: %s", err.text);
    close(listening);
    tap_ok(hvd_socket_connect_host(path, "0", hvd_clock_ms() + 60000, &err) ==
                   HVD_ERR_NET &&
               strstr(err.text, path) != NULL &&
               strstr(err.text, "Connection refused") != NULL,
           "a path where nobody listens fails at once: %s", err.text);
    snprintf(longer, sizeof(longer), "%s/%0150d", directory, 0);
    tap_ok(hvd_socket_path_fits(path) && !hvd_socket_path_fits(longer) &&
               !hvd_socket_path_fits("ranks"),
           "paths that are too long or relative do not fit");
    close(fd);
    close(other);
    unlink(path);
    rmdir(directory);
}

/* Takes a port of 127.0.0.2 that the kernel picks. Then both addresses may use only this
 * port, and later this port or its neighbour. */
static void test_several_addresses(void)
{
    const struct hvd_ip addresses[] = {{.version = 4, .bytes = {127, 0, 0, 1}},
                                       {.version = 4, .bytes = {127, 0, 0, 2}}};
    struct hvd_socket_address second = {.addresses = {addresses[1]}, .count = 1};
    struct hvd_socket_address both = {.addresses = {addresses[0], addresses[1]},
                                      .count = 2};
    struct hvd_error err = {0};
    uint16_t taken = 0, port = 0;
    int busy = -1, fds[2] = {-1, -1};

    tap_ok(hvd_socket_address_count(&both) == 2 &&
               hvd_socket_listen_tcp(&both, fds, &port, NULL) == 0 &&
               has_port(fds[0], &addresses[0], port) &&
               has_port(fds[1], &addresses[1], port),
           "sockets listen at two addresses with the same port");
    close(fds[0]);
    close(fds[1]);
    hvd_socket_listen_tcp(&second, &busy, &taken, NULL);
    both.ports = (struct hvd_port_range){taken, taken};
    fds[0] = fds[1] = -1;
    tap_ok(hvd_socket_listen_tcp(&both, fds, &port, &err) == HVD_ERR_SYS &&
               strstr(err.text, "are in use on this host") != NULL && fds[0] == -1,
           "a port that is in use at one address is not used at the other");
    both.ports = (struct hvd_port_range){taken, (uint16_t)(taken + 1)};
    if (taken == UINT16_MAX) {
        both.ports = (struct hvd_port_range){(uint16_t)(taken - 1), taken};
    }
    tap_ok(hvd_socket_listen_tcp(&both, fds, &port, &err) == 0 && port != taken,
           "another port is used at both addresses %s", err.text);
    close(fds[0]);
    close(fds[1]);
    close(busy);
}

static bool has_reason(const char *text, const char *reason)
{
    struct hvd_port_range range = {0};
    struct hvd_error err = {0};

    return hvd_port_range_parse(text, &range, &err) == HVD_ERR_ARG && range.first == 0 &&
           strstr(err.text, reason) != NULL;
}

static void test_ports(void)
{
    static const char *const wrong[] = {
        "x", "1", "1-", "5-4", "0-7", "-1-", "1-2-", "1-65536", " 1-2", "99999999999-2"};
    struct hvd_socket_address place = hvd_socket_loopback;
    struct hvd_error err = {0};
    uint16_t port = 0, second = 0;
    int first = -1, other = -1;
    size_t refused = 0;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        refused += has_reason(wrong[i], "HVD_PORT_RANGE is '") ? 1 : 0;
    }
    tap_ok(refused == sizeof(wrong) / sizeof(wrong[0]),
           "a text that is not a range of ports is rejected");
    tap_ok(hvd_port_range_parse(NULL, &place.ports, NULL) == 0 &&
               place.ports.first == 0 &&
               hvd_port_range_parse("2-65535", &place.ports, NULL) == 0 &&
               place.ports.first == 2 && place.ports.last == 65535,
           "a range has a first and a last port");
    hvd_socket_listen_tcp(&hvd_socket_loopback, &first, &port, NULL);
    place.ports = (struct hvd_port_range){port, port};
    tap_ok(hvd_socket_listen_tcp(&place, &other, &second, &err) < 0 &&
               strstr(err.text, "are in use on this host") != NULL,
           "a range without a free port is an error");
    close(first);
    tap_ok(hvd_socket_listen_tcp(&place, &other, &second, NULL) == 0 && second == port,
           "the port is one of the range");
    close(other);
}

int main(void)
{
    static const struct hvd_socket_address everywhere;

    test_path();
    test_several_addresses();
    test_ports();
    test_connect(&everywhere, "on all addresses");
    test_connect(&hvd_socket_loopback, "on this machine");
    test_nobody();
    test_signal();
    test_whole();
    test_closed();
    test_limit();
    return tap_done();
}
