/* SPDX-License-Identifier: Apache-2.0 */
/* Stream sockets. */
#include "pmix_boot/sock/socket.h"

#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/env.h"

#define SOCKET_FLAGS (SOCK_NONBLOCK | SOCK_CLOEXEC)

/* Pause between two attempts to connect to a host where nobody listens yet. */
static const int pause_ms = 200;

/* Probes of a connection that is patient: seconds between them, and how many may stay
 * without an answer. */
enum {
    PATIENT_SECONDS = 10,
    PATIENT_PROBES = 3,
};

union address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
};

static socklen_t tcp_address(union address *address, const struct hvd_ip *ip,
                             uint16_t port)
{
    memset(address, 0, sizeof(*address));
    if (ip->version == 4) {
        address->in.sin_family = AF_INET;
        address->in.sin_port = htons(port);
        memcpy(&address->in.sin_addr, ip->bytes, 4);
        return sizeof(address->in);
    }
    address->in6.sin6_family = AF_INET6;
    address->in6.sin6_port = htons(port);
    memcpy(&address->in6.sin6_addr, ip->bytes, 16);
    return sizeof(address->in6);
}

/* Makes an abstract address: its first byte is 0, and no file is created. */
static socklen_t unix_address(union address *address, const char *name)
{
    static_assert(HVD_SOCKET_NAME_BYTES < sizeof(address->un.sun_path), "name fits");

    memset(address, 0, sizeof(*address));
    address->un.sun_family = AF_UNIX;
    memcpy(address->un.sun_path + 1, name, HVD_SOCKET_NAME_BYTES);
    return offsetof(struct sockaddr_un, sun_path) + 1 + HVD_SOCKET_NAME_BYTES;
}

/* Makes the address of a path that fits. */
static socklen_t path_address(union address *address, const char *path)
{
    memset(address, 0, sizeof(*address));
    address->un.sun_family = AF_UNIX;
    memcpy(address->un.sun_path, path, strlen(path));
    return sizeof(address->un);
}

bool hvd_socket_path_fits(const char *path)
{
    return path[0] == '/' &&
           strlen(path) < sizeof(((struct sockaddr_un *)NULL)->sun_path);
}

static int keep_errno_close(int fd)
{
    int saved = errno;

    close(fd);
    errno = saved;
    return -1;
}

/* Opens a socket. At the unspecified address of IPv6 it also accepts IPv4 connections. */
static int open_socket(const union address *address)
{
    int off = 0;
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCKET_FLAGS, 0);

    if (fd >= 0 && address->any.sa_family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    }
    return fd;
}

static int listen_unix(union address *address, socklen_t length)
{
    int fd = open_socket(address);

    if (fd >= 0 && (bind(fd, &address->any, length) != 0 || listen(fd, SOMAXCONN) != 0)) {
        return keep_errno_close(fd);
    }
    return fd;
}

/* Listens at one address. IP_FREEBIND is needed for a new IPv6 address: it is not usable
 * while the kernel checks that no other host has it. */
static int listen_tcp(const struct hvd_ip *ip, uint16_t *port)
{
    const int on = 1;
    union address address;
    socklen_t length = tcp_address(&address, ip, *port);
    int fd = open_socket(&address);

    if (fd < 0) {
        return -1;
    }
    setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on));
    if (bind(fd, &address.any, length) != 0 || listen(fd, SOMAXCONN) != 0) {
        return keep_errno_close(fd);
    }
    length = sizeof(address);
    getsockname(fd, &address.any, &length);
    *port = ntohs(ip->version == 6 ? address.in6.sin6_port : address.in.sin_port);
    return fd;
}

struct listening {
    const struct hvd_ip *addresses;
    int count;
    int *fds;
    uint16_t port;
};

/* Listens on the same port at all addresses, or at none. This is the binder for
 * hvd_port_range_bind. */
static int listen_at_all(void *context, uint16_t port)
{
    struct listening *listening = context;

    listening->port = port;
    for (int i = 0; i < listening->count; i++) {
        int fd = listen_tcp(&listening->addresses[i], &listening->port);

        if (fd < 0) {
            while (i > 0) {
                keep_errno_close(listening->fds[--i]);
            }
            return -1;
        }
        listening->fds[i] = fd;
    }
    return 0;
}

const struct hvd_socket_address hvd_socket_loopback = {
    .addresses = {{.version = 4, .bytes = {127, 0, 0, 1}}}, .count = 1};

static int fail_listening(const struct hvd_socket_address *address, struct hvd_error *err)
{
    if (address->ports.first != 0 && errno == EADDRINUSE) {
        return hvd_fail(err, HVD_ERR_SYS,
                        "all TCP ports from %u to %u are in use on this host: choose a "
                        "larger " HVD_ENV_PORT_RANGE,
                        (unsigned)address->ports.first, (unsigned)address->ports.last);
    }
    return hvd_fail(err, HVD_ERR_SYS, "cannot listen on a TCP port: %m");
}

int hvd_socket_address_count(const struct hvd_socket_address *address)
{
    return address->count > 0 ? address->count : 1;
}

int hvd_socket_listen_tcp(const struct hvd_socket_address *address, int *fds,
                          uint16_t *port, struct hvd_error *err)
{
    static const struct hvd_ip all[] = {{.version = 6}, {.version = 4}};
    int found[HVD_SOCKET_ADDRESSES];
    struct listening listening = {
        address->count > 0 ? address->addresses : &all[0],
        hvd_socket_address_count(address),
        found,
        0,
    };
    int status = hvd_port_range_bind(address->ports, listen_at_all, &listening);

    if (status != 0 && address->count == 0) {
        listening.addresses = &all[1];
        status = hvd_port_range_bind(address->ports, listen_at_all, &listening);
    }
    if (status != 0) {
        return fail_listening(address, err);
    }
    memcpy(fds, found, (size_t)listening.count * sizeof(fds[0]));
    *port = listening.port;
    return 0;
}

int hvd_socket_listen_unix(int *fd, char name[HVD_SOCKET_NAME_BYTES],
                           struct hvd_error *err)
{
    unsigned char random[HVD_SOCKET_NAME_BYTES / 2 - 2];
    char chosen[HVD_SOCKET_NAME_BYTES] = "hvd";
    union address address;
    socklen_t length;
    int listening;

    randombytes_buf(random, sizeof(random));
    sodium_bin2hex(chosen + 3, sizeof(chosen) - 3, random, sizeof(random));
    length = unix_address(&address, chosen);
    listening = listen_unix(&address, length);
    if (listening < 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot listen on a unix socket: %m");
    }
    *fd = listening;
    memcpy(name, chosen, sizeof(chosen));
    return 0;
}

int hvd_socket_listen_path(const char *path, int *fd, struct hvd_error *err)
{
    union address address;
    int listening = -1;

    errno = ENAMETOOLONG;
    if (hvd_socket_path_fits(path)) {
        socklen_t length = path_address(&address, path);

        listening = listen_unix(&address, length);
    }
    if (listening < 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot listen at %s: %m", path);
    }
    *fd = listening;
    return 0;
}

static bool is_unix(int fd)
{
    int domain = 0;
    socklen_t length = sizeof(domain);

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 &&
           domain == AF_UNIX;
}

static bool is_same_user(int fd)
{
    struct ucred other;
    socklen_t length = sizeof(other);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &length) == 0 &&
           other.uid == geteuid();
}

struct hvd_socket_endpoint hvd_socket_endpoint_of(int fd, enum hvd_socket_side side)
{
    struct hvd_socket_endpoint endpoint = {0};
    union address address = {.any.sa_family = AF_UNSPEC};
    socklen_t length = sizeof(address);
    int status = side == HVD_SOCKET_ACCEPTED ? getsockname(fd, &address.any, &length)
                                             : getpeername(fd, &address.any, &length);

    static_assert(sizeof(endpoint) == 20, "there is no padding");
    if (status == 0) {
        endpoint.ip = hvd_ip_of(&address.any);
    }
    if (endpoint.ip.version != 0) {
        endpoint.port = ntohs(address.any.sa_family == AF_INET6 ? address.in6.sin6_port
                                                                : address.in.sin_port);
    }
    return endpoint;
}

/* Probes an idle connection. unsent_ms: TCP_USER_TIMEOUT. While that is on, the kernel
 * also ends a connection if the receive buffer of the other end stays full for that long,
 * even though the other host still answers (seen with Linux 6.18); 0: off. On a TCP
 * socket, none of these options is refused. */
static void probe(int fd, int every_seconds, int probes, unsigned unsent_ms)
{
    const int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &every_seconds, sizeof(every_seconds));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_seconds, sizeof(every_seconds));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unsent_ms, sizeof(unsent_ms));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

/* Sends small messages at once, and ends connections to silent hosts. */
static void tune_tcp(int fd)
{
    const int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    probe(fd, 1, HVD_SOCKET_DEAD_AFTER_MS / 1000, HVD_SOCKET_DEAD_AFTER_MS);
}

void hvd_socket_be_patient(int fd)
{
    probe(fd, PATIENT_SECONDS, PATIENT_PROBES, 0);
}

int hvd_socket_accept(int listening_fd)
{
    int fd = accept4(listening_fd, NULL, NULL, SOCKET_FLAGS);

    if (fd < 0) {
        return -1;
    }
    if (!is_unix(fd)) {
        tune_tcp(fd);
    } else if (!is_same_user(fd)) {
        errno = EPERM;
        return keep_errno_close(fd);
    }
    return fd;
}

bool hvd_socket_is_out_of_room(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

static int start_connecting(const struct sockaddr *address, socklen_t length)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCKET_FLAGS, 0);

    if (fd < 0) {
        return -1;
    }
    if (address->sa_family != AF_UNIX) {
        tune_tcp(fd);
    }
    if (connect(fd, address, length) != 0 && errno != EINPROGRESS) {
        return keep_errno_close(fd);
    }
    return fd;
}

int hvd_socket_connect_tcp(const struct hvd_ip *ip, uint16_t port)
{
    union address address;
    socklen_t length = tcp_address(&address, ip, port);

    return start_connecting(&address.any, length);
}

int hvd_socket_connect_unix(const char name[HVD_SOCKET_NAME_BYTES])
{
    union address address;
    socklen_t length = unix_address(&address, name);
    int fd = start_connecting(&address.any, length);

    if (fd >= 0 && !is_same_user(fd)) {
        errno = EPERM;
        return keep_errno_close(fd);
    }
    return fd;
}

int hvd_socket_connect_error(int fd)
{
    int error = 0;
    socklen_t length = sizeof(error);

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) {
        return errno;
    }
    return error;
}

bool hvd_socket_wait(int fd, short events, int64_t deadline_ms)
{
    struct pollfd polled = {.fd = fd, .events = events};
    int64_t left_ms = deadline_ms - hvd_clock_ms();
    int ready;

    if (deadline_ms < 0) {
        left_ms = -1;
    } else if (left_ms < 0) {
        left_ms = 0; /* an event that has happened counts even after the deadline */
    }
    ready = poll(&polled, 1, (int)left_ms);
    return ready > 0 || (ready < 0 && errno == EINTR && left_ms != 0);
}

/* Connects to one address. Returns a socket, or -1 with errno. */
static int connect_address(const struct addrinfo *address, int64_t deadline_ms)
{
    int fd = start_connecting(address->ai_addr, address->ai_addrlen);
    struct pollfd polled = {.fd = fd, .events = POLLOUT};

    if (fd < 0) {
        return -1;
    }
    /* hvd_socket_wait also returns true after a signal */
    while (hvd_socket_wait(fd, POLLOUT, deadline_ms)) {
        if (poll(&polled, 1, 0) > 0) {
            errno = hvd_socket_connect_error(fd);
            return errno == 0 ? fd : keep_errno_close(fd);
        }
    }
    errno = ETIMEDOUT;
    return keep_errno_close(fd);
}

/* Connects to a path. The service listened before anyone was told its path, so waiting
 * helps only if its queue of connections is full. */
static int connect_path(const char *path, int64_t deadline_ms, struct hvd_error *err)
{
    union address address;
    int fd = -1;

    errno = ENAMETOOLONG;
    while (hvd_socket_path_fits(path)) {
        fd = start_connecting(&address.any, path_address(&address, path));
        if (fd >= 0 || errno != EAGAIN || hvd_clock_ms() >= deadline_ms) {
            break;
        }
        poll(NULL, 0, pause_ms / 10);
    }
    return fd >= 0 ? fd : hvd_fail(err, HVD_ERR_NET, "cannot connect to %s: %m", path);
}

int hvd_socket_connect_host(const char *host, const char *port, int64_t deadline_ms,
                            struct hvd_error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *addresses = NULL;
    int fd = -1;
    int error;

    if (host[0] == '/') {
        return connect_path(host, deadline_ms, err);
    }
    error = getaddrinfo(host, port, &hints, &addresses);
    if (error != 0) {
        return hvd_fail(err, HVD_ERR_NET, "there is no host %s: %s", host,
                        gai_strerror(error));
    }
    while (fd < 0) {
        for (const struct addrinfo *address = addresses; address != NULL && fd < 0;
             address = address->ai_next) {
            fd = connect_address(address, deadline_ms);
        }
        if (fd < 0 && hvd_clock_ms() + pause_ms >= deadline_ms) {
            break;
        }
        if (fd < 0) {
            poll(NULL, 0, pause_ms);
        }
    }
    error = errno;
    freeaddrinfo(addresses);
    errno = error;
    return fd >= 0 ? fd
                   : hvd_fail(err, HVD_ERR_NET, "cannot connect to %s port %s: %m", host,
                              port);
}

bool hvd_socket_is_unsent(int fd)
{
    struct pollfd state = {.fd = fd};
    int bytes = 0;

    /* A peer that closed with our bytes unread has reset the connection. They count as
     * unsent for ever: do not wait for them. */
    if (poll(&state, 1, 0) > 0 && (state.revents & (POLLERR | POLLHUP)) != 0) {
        return false;
    }
    return !is_unix(fd) && ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

int hvd_socket_send(int fd, const void *data, size_t bytes)
{
    const char *next = data;

    while (bytes > 0) {
        ssize_t sent = send(fd, next, bytes, MSG_NOSIGNAL);

        if (sent >= 0) {
            next += sent;
            bytes -= (size_t)sent;
        } else if (errno != EINTR) {
            return HVD_ERR_SYS;
        }
    }
    return 0;
}

int hvd_socket_receive(int fd, void *data, size_t bytes)
{
    char *next = data;

    while (bytes > 0) {
        ssize_t received = recv(fd, next, bytes, MSG_WAITALL);

        if (received > 0) {
            next += received;
            bytes -= (size_t)received;
        } else if (received == 0) {
            errno = 0;
            return HVD_ERR_SYS;
        } else if (errno != EINTR) {
            return HVD_ERR_SYS;
        }
    }
    return 0;
}
