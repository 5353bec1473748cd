/* SPDX-License-Identifier: Apache-2.0 */
/* Reserves a port by a bound socket that does not listen. With SO_REUSEADDR on both
 * sockets, the kernel lets another socket bind to the same port, as long as neither
 * listens yet. */
#include "pmix_boot/held_port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static int bind_ipv4(void *fd, uint16_t port)
{
    const struct sockaddr_in all = {.sin_family = AF_INET, .sin_port = htons(port)};

    return bind(*(int *)fd, (const struct sockaddr *)&all, sizeof(all));
}

static int bind_ipv6(void *fd, uint16_t port)
{
    const struct sockaddr_in6 all = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

    return bind(*(int *)fd, (const struct sockaddr *)&all, sizeof(all));
}

/* Binds a socket, which on IPv6 also reserves the port of IPv4. The socket becomes
 * shareable only after it is bound, so that no other job reserves the same port. Returns
 * a descriptor, or -1 and sets errno. */
static int hold_port(int family, struct hvd_port_range ports)
{
    const int on = 1, off = 0;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return -1;
    }
    if (family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    }
    if (hvd_port_range_bind(ports, family == AF_INET6 ? bind_ipv6 : bind_ipv4, &fd) !=
            0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

int hvd_held_port_open(struct hvd_port_range ports, int *fd, uint16_t *port,
                       struct hvd_error *err)
{
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } address = {.in6 = {0}};
    socklen_t bytes = sizeof(address);
    int held = hold_port(AF_INET6, ports);

    if (held < 0) {
        held = hold_port(AF_INET, ports);
    }
    if (held < 0 || getsockname(held, &address.any, &bytes) != 0) {
        close(held);
        return hvd_fail(err, HVD_ERR_SYS, "cannot reserve a TCP port: %m");
    }
    *fd = held;
    *port = ntohs(address.any.sa_family == AF_INET6 ? address.in6.sin6_port
                                                    : address.in.sin_port);
    return 0;
}
