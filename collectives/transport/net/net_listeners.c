/* SPDX-License-Identifier: Apache-2.0 */
/* The listening sockets of this process. */
#include "collectives/transport/net/net_listeners.h"

#include <dirent.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* In network byte order; 0: not TCP. */
static in_port_t port_of(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t bytes = sizeof(address);

    if (getsockname(fd, (struct sockaddr *)&address, &bytes) != 0) {
        return 0;
    }
    switch (address.ss_family) {
    case AF_INET:
        return ((struct sockaddr_in *)&address)->sin_port;
    case AF_INET6:
        return ((struct sockaddr_in6 *)&address)->sin6_port;
    default:
        return 0;
    }
}

static bool is_listening(int fd)
{
    int value = 0;
    socklen_t bytes = sizeof(value);

    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &bytes) == 0 && value != 0 &&
           port_of(fd) != 0;
}

void hvd_net_listeners_find(struct hvd_net_listeners *out)
{
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;

    out->count = 0;
    if (folder == NULL) {
        return;
    }
    while (out->count < HVD_NET_LISTENERS && (entry = readdir(folder)) != NULL) {
        char *end;
        int fd = (int)strtol(entry->d_name, &end, 10);

        if (end != entry->d_name && is_listening(fd)) {
            out->fds[out->count++] = fd;
        }
    }
    closedir(folder);
}

static bool has(const struct hvd_net_listeners *listeners, int fd)
{
    for (int i = 0; i < listeners->count; i++) {
        if (listeners->fds[i] == fd) {
            return true;
        }
    }
    return false;
}

void hvd_net_listeners_keep_ucx(struct hvd_net_listeners *listeners,
                                const struct hvd_net_listeners *before,
                                const void *address, size_t bytes)
{
    int kept = 0;

    for (int i = 0; i < listeners->count; i++) {
        int fd = listeners->fds[i];
        in_port_t port = port_of(fd);

        if (!has(before, fd) && memmem(address, bytes, &port, sizeof(port)) != NULL) {
            listeners->fds[kept++] = fd;
        }
    }
    listeners->count = kept;
}
