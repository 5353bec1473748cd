/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets listen and connect within a time limit; what is sent whole arrives whole, or there is a
 * reason. */
#include "pmix_boot/wire/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
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
           "what comes in parts is received whole");
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
           "an end that closed half-way is told by errno 0");
    tap_ok(hvd_socket_send(ends[1], "abc", 3) == HVD_ERR_SYS && errno == EPIPE,
           "to send to it fails, without a signal");
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
           "a time limit that passed is told by EAGAIN");
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

/* What every connection has, on both of its ends. */
static bool is_tuned(int fd)
{
    return (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0 &&
           (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0 &&
           option_of(fd, SOL_SOCKET, SO_KEEPALIVE) == 1 &&
           option_of(fd, IPPROTO_TCP, TCP_NODELAY) == 1 &&
           option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT) == HVD_SOCKET_DEAD_AFTER_MS;
}

static void test_connect(enum hvd_socket_scope scope, const char *where)
{
    struct hvd_error err = {0};
    char text[16];
    uint16_t port = 0;
    int listening = -1;
    int fd, other;

    if (!tap_ok(hvd_socket_listen_tcp(scope, &listening, &port, &err) == 0 && port > 0,
                "a socket listens %s", where)) {
        return;
    }
    tap_ok(hvd_socket_accept(listening) < 0 && errno == EAGAIN,
           "and does not wait for who connects");
    snprintf(text, sizeof(text), "%u", (unsigned)port);
    fd = hvd_socket_connect_host("127.0.0.1", text, hvd_clock_ms() + 5000, &err);
    tap_ok(fd >= 0, "its port can be reached %s", err.text);
    tap_ok(hvd_socket_wait(listening, POLLIN, hvd_clock_ms() + 5000), "it hears of that");
    other = hvd_socket_accept(listening);
    tap_ok(is_tuned(fd) && is_tuned(other), "both ends notice a host that vanishes");
    tap_ok(!hvd_socket_wait(other, POLLIN, hvd_clock_ms() + 20),
           "to wait for what does not come takes no longer than said");
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

    hvd_socket_listen_tcp(HVD_SOCKET_LOOPBACK, &listening, &port, NULL);
    snprintf(text, sizeof(text), "%u", (unsigned)port);
    close(listening);
    tap_ok(hvd_socket_connect_host("127.0.0.1", text, begin_ms + 1000, &err) ==
                   HVD_ERR_NET &&
               strstr(err.text, "Connection refused") != NULL,
           "who finds nobody is told: %s", err.text);
    tap_ok(hvd_clock_ms() - begin_ms < 5000, "within the time limit");
    tap_ok(hvd_socket_connect_host("no.such.host.invalid", "1", begin_ms, &err) ==
                   HVD_ERR_NET &&
               strstr(err.text, "no.such.host.invalid") != NULL,
           "so is who names no host: %s", err.text);
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
           "what is sent to it arrives");
    tap_ok(hvd_socket_listen_path(path, &other, &err) == HVD_ERR_SYS &&
               strstr(err.text, path) != NULL &&
               strstr(err.text, "Address already in use") != NULL,
           "a path that exists is refused: %s", err.text);
    close(listening);
    tap_ok(hvd_socket_connect_host(path, "0", hvd_clock_ms() + 60000, &err) ==
                   HVD_ERR_NET &&
               strstr(err.text, path) != NULL &&
               strstr(err.text, "Connection refused") != NULL,
           "who finds nobody there is told at once: %s", err.text);
    snprintf(longer, sizeof(longer), "%s/%0150d", directory, 0);
    tap_ok(hvd_socket_path_fits(path) && !hvd_socket_path_fits(longer) &&
               !hvd_socket_path_fits("ranks"),
           "long paths and relative ones are told apart");
    close(fd);
    close(other);
    unlink(path);
    rmdir(directory);
}

int main(void)
{
    test_path();
    test_connect(HVD_SOCKET_ALL_ADDRESSES, "on all addresses");
    test_connect(HVD_SOCKET_LOOPBACK, "on this machine");
    test_nobody();
    test_whole();
    test_closed();
    test_limit();
    return tap_done();
}
