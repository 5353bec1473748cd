/* SPDX-License-Identifier: Apache-2.0 */
/* A held port is given only to programs that ask for its number. */
#include "pmix_boot/held_port.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/tap.h"

#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE 51 /* Linux 6.3; newer than some C libraries */
#endif

/* Binds a new socket. Returns 0 or the errno. */
static int bind_to(int family, uint16_t port, int reuse, int *fd)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

    *fd = socket(family, SOCK_STREAM, 0);
    if (*fd < 0) {
        return errno;
    }
    setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
    return (family == AF_INET ? bind(*fd, (struct sockaddr *)&in, sizeof(in))
                              : bind(*fd, (struct sockaddr *)&in6, sizeof(in6))) == 0
               ? 0
               : errno;
}

/* Listens on the port as torch's store does: on IPv6, if this machine has it. */
static void test_store(int family, uint16_t port, const char *promise)
{
    int fd;
    int error = bind_to(family, port, 1, &fd);

    if (error == EAFNOSUPPORT || error == EADDRNOTAVAIL) {
        tap_skip(promise, "no such addresses here");
        return;
    }
    tap_ok(error == 0 && listen(fd, 1) == 0, "%s", promise);
    close(fd);
}

static void test_others(uint16_t port)
{
    const char *promise =
        "the kernel does not give the port to a program that asks for any";
    uint32_t range = (uint32_t)port << 16 | port;
    struct sockaddr_in any = {.sin_family = AF_INET};
    int fd, on = 1;

    tap_ok(bind_to(AF_INET, port, 0, &fd) == EADDRINUSE,
           "a program that does not share addresses cannot take the port");
    close(fd);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (setsockopt(fd, IPPROTO_IP, IP_LOCAL_PORT_RANGE, &range, sizeof(range)) != 0) {
        tap_skip(promise, "this kernel does not let a socket choose the range of ports");
    } else {
        tap_ok(bind(fd, (struct sockaddr *)&any, sizeof(any)) != 0 && errno == EADDRINUSE,
               "%s", promise);
    }
    close(fd);
}

static void test_refused(uint16_t port)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    tap_ok(connect(fd, (struct sockaddr *)&in, sizeof(in)) != 0 && errno == ECONNREFUSED,
           "connections are refused before a program listens");
    close(fd);
}

int main(void)
{
    uint16_t port = 0, second = 0;
    const struct hvd_port_range any = {0};
    int fd = -1, other = -1;

    tap_ok(hvd_held_port_open(any, &fd, &port, NULL) == 0 && fd >= 0 && port > 0,
           "a port is held");
    tap_ok(hvd_held_port_open(any, &other, &second, NULL) == 0 && second != port,
           "two jobs hold two ports");
    test_others(port);
    test_refused(port);
    test_store(AF_INET, port, "its program can listen on it");
    test_store(AF_INET6, port, "on IPv6, too");
    close(other);
    tap_ok(hvd_held_port_open((struct hvd_port_range){port, port}, &other, &second,
                              NULL) < 0,
           "no other job holds the same port, although both could share it with a store");
    close(fd);
    tap_ok(hvd_held_port_open((struct hvd_port_range){port, port}, &fd, &second, NULL) ==
                   0 &&
               second == port,
           "a job holds a port of the given range");
    close(fd);
    return tap_done();
}
