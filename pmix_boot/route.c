/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the network by which this host reaches another one. */
#include "pmix_boot/route.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

/* Sets a port, because some kernels do not connect to port 0. */
static int parse_address(const char *text, union address *address, socklen_t *bytes)
{
    memset(address, 0, sizeof(*address));
    if (inet_pton(AF_INET, text, &address->in.sin_addr) == 1) {
        address->in.sin_family = AF_INET;
        address->in.sin_port = htons(9);
        *bytes = sizeof(address->in);
        return 0;
    }
    if (inet_pton(AF_INET6, text, &address->in6.sin6_addr) == 1) {
        address->in6.sin6_family = AF_INET6;
        address->in6.sin6_port = htons(9);
        *bytes = sizeof(address->in6);
        return 0;
    }
    return HVD_ERR_ARG;
}

/* Finds this host's address for packets to the peer. Connecting a datagram socket makes
 * the kernel choose it, and sends nothing. */
static int find_own(const union address *peer, socklen_t bytes, union address *own)
{
    int fd = socket(peer->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_found = fd >= 0 && connect(fd, &peer->any, bytes) == 0 &&
                    getsockname(fd, &own->any, &bytes) == 0;

    if (fd >= 0) {
        close(fd);
    }
    return is_found ? 0 : HVD_ERR_NET;
}

static bool is_same(const struct sockaddr *found, const union address *own)
{
    if (found == NULL || found->sa_family != own->any.sa_family) {
        return false;
    }
    if (found->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)found;

        return in->sin_addr.s_addr == own->in.sin_addr.s_addr;
    }
    const struct sockaddr_in6 *in6 = (const void *)found;
    return memcmp(&in6->sin6_addr, &own->in6.sin6_addr, sizeof(in6->sin6_addr)) == 0;
}

static int name_interface(const union address *own, char *name, size_t size)
{
    struct ifaddrs *all = NULL;
    int status = HVD_ERR_NET;

    if (getifaddrs(&all) != 0) {
        return status;
    }
    for (const struct ifaddrs *entry = all; entry != NULL; entry = entry->ifa_next) {
        if (is_same(entry->ifa_addr, own)) {
            snprintf(name, size, "%s", entry->ifa_name);
            status = 0;
            break;
        }
    }
    freeifaddrs(all);
    return status;
}

int hvd_route_find(const char *peer, struct hvd_route *route, struct hvd_error *err)
{
    struct hvd_route found;
    union address there;
    union address own;
    socklen_t bytes;

    if (parse_address(peer, &there, &bytes) != 0) {
        return hvd_fail(err, HVD_ERR_ARG, "expected an IP address, found '%.100s'", peer);
    }
    memset(&own, 0, sizeof(own));
    if (find_own(&there, bytes, &own) != 0) {
        return hvd_fail(err, HVD_ERR_NET, "this host has no route to %.100s: %m", peer);
    }
    const void *raw = own.any.sa_family == AF_INET ? (const void *)&own.in.sin_addr
                                                   : (const void *)&own.in6.sin6_addr;
    inet_ntop(own.any.sa_family, raw, found.address, sizeof(found.address));
    if (name_interface(&own, found.interface, sizeof(found.interface)) != 0) {
        return hvd_fail(err, HVD_ERR_NET, "no interface of this host has the address %s",
                        found.address);
    }
    *route = found;
    return 0;
}
