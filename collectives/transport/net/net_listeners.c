/* SPDX-License-Identifier: Apache-2.0 */
/* The listening sockets of this process. */
#include "collectives/transport/net/net_listeners.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

/* The next descriptor that is open, besides the folder's own; -1: there is no further one. */
static int next_descriptor(DIR *folder)
{
    const struct dirent *entry;

    while ((entry = readdir(folder)) != NULL) {
        char *end;
        int fd = (int)strtol(entry->d_name, &end, 10);

        if (end != entry->d_name && fd != dirfd(folder)) {
            return fd;
        }
    }
    return -1;
}

void hvd_net_listeners_find(struct hvd_net_listeners *out)
{
    DIR *folder = opendir("/proc/self/fd");
    int fd;

    out->count = 0;
    if (folder == NULL) {
        return;
    }
    while (out->count < HVD_NET_LISTENERS && (fd = next_descriptor(folder)) >= 0) {
        if (is_listening(fd)) {
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

/* Those that UCX has not accepted yet. */
static void close_waiting(int listener)
{
    int flags = fcntl(listener, F_GETFL), fd;

    if (flags < 0 || (flags & O_NONBLOCK) == 0) {
        return;
    }
    while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        close(fd);
    }
}

/* A connection that a listening socket has accepted has the address of that socket. */
static bool leads_to(const struct hvd_net_listeners *listeners, int fd)
{
    struct sockaddr_storage own = {0};
    socklen_t bytes = sizeof(own);

    if (port_of(fd) == 0 || getsockname(fd, (struct sockaddr *)&own, &bytes) != 0) {
        return false;
    }
    for (int i = 0; i < listeners->count; i++) {
        struct sockaddr_storage address = {0};

        bytes = sizeof(address);
        if (fd != listeners->fds[i] &&
            getsockname(listeners->fds[i], (struct sockaddr *)&address, &bytes) == 0 &&
            memcmp(&own, &address, sizeof(own)) == 0) {
            return true;
        }
    }
    return false;
}

/* UCX, which owns it, sees its end, and nothing else: what has come is dropped here, and the kernel
 * takes no more. */
static void end_accepted(int fd)
{
    char data[4096];

    shutdown(fd, SHUT_RDWR);
    while (recv(fd, data, sizeof(data), MSG_DONTWAIT) > 0) {
    }
}

void hvd_net_listeners_clear(const struct hvd_net_listeners *listeners)
{
    DIR *folder;
    int fd;

    for (int i = 0; i < listeners->count; i++) {
        close_waiting(listeners->fds[i]);
    }
    folder = opendir("/proc/self/fd");
    while (folder != NULL && (fd = next_descriptor(folder)) >= 0) {
        if (leads_to(listeners, fd)) {
            end_accepted(fd);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}
