/* SPDX-License-Identifier: Apache-2.0 */
/* Stream sockets: listening, connecting, accepting. Listening sockets and connections do
 * not block, and are closed on exec.
 *
 * TCP connections notice a vanished host by themselves: the kernel probes an idle
 * connection, and ends it when nothing came back for HVD_SOCKET_DEAD_AFTER_MS. A process
 * that is merely stopped still answers, by its kernel, as long as its receive buffer has
 * room: see hvd_socket_be_patient. */
#ifndef HVD_SOCKET_H
#define HVD_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pmix_boot/sock/interfaces.h"
#include "pmix_boot/sock/port_range.h"

/* Probes leave each second, so that silence is noticed within 4 s: below the 5 s in which
 * every rank is to know, above what a switch needs to fail over a link. */
#define HVD_SOCKET_DEAD_AFTER_MS 3500

#define HVD_SOCKET_NAME_BYTES 24

/* The listening end of a connection, as one of the two ends knows it. They differ where
 * something in between translates addresses or relays. Without padding: it is sent, and
 * proofs cover it. */
struct hvd_socket_endpoint {
    /* version 0: a unix socket, where the kernel vouches for the user */
    struct hvd_ip ip;
    unsigned char zero;
    uint16_t port;
};

/* At how many addresses a program listens at most, unless at all. */
#define HVD_SOCKET_ADDRESSES 16

struct hvd_socket_address {
    struct hvd_ip addresses[HVD_SOCKET_ADDRESSES];
    int count; /* of the addresses; 0: all of this machine */
    struct hvd_port_range ports;
};

/* Reached from this machine only. */
extern const struct hvd_socket_address hvd_socket_loopback;

/* How many sockets listen: one for each address, or one for all. */
int hvd_socket_address_count(const struct hvd_socket_address *address);

/* Listens; fds gets hvd_socket_address_count() descriptors, *port a port that was free at
 * all the addresses. */
int hvd_socket_listen_tcp(const struct hvd_socket_address *address, int *fds,
                          uint16_t *port, struct hvd_error *err);

/* Listens under a random abstract name, which name receives. */
int hvd_socket_listen_unix(int *fd, char name[HVD_SOCKET_NAME_BYTES],
                           struct hvd_error *err);

/* Listens at a path, which must not exist. A directory that only the user may enter keeps
 * others out; processes of other networks of this machine can connect. */
int hvd_socket_listen_path(const char *path, int *fd, struct hvd_error *err);

/* Whether a path is short enough for that, and begins with a slash. */
bool hvd_socket_path_fits(const char *path);

/* Takes one connection: a descriptor, or -1 with errno when there is none. On a unix
 * socket a process of another user is turned away, with EPERM. */
int hvd_socket_accept(int listening_fd);

/* Whether accept failed with this errno for lack of descriptors or memory. The connection
 * stays in the kernel's queue and its socket readable: wait before you accept again. */
bool hvd_socket_is_out_of_room(int error);

/* Starts to connect: a descriptor, which is writable when the attempt has ended and
 * hvd_socket_connect_error tells how; or -1 with errno. A unix socket on which another
 * user listens is EPERM. */
int hvd_socket_connect_tcp(const struct hvd_ip *ip, uint16_t port);
int hvd_socket_connect_unix(const char name[HVD_SOCKET_NAME_BYTES]);

/* 0, or the errno with which the attempt failed. */
int hvd_socket_connect_error(int fd);

/* Connects to a host, a name or a number, and tries again until the deadline
 * (hvd_clock_ms) where nobody listens yet; or to what listens at a path, if host begins
 * with a slash. Returns a descriptor, or HVD_ERR_NET. */
int hvd_socket_connect_host(const char *host, const char *port, int64_t deadline_ms,
                            struct hvd_error *err);

/* The listening end of a TCP or unix connection. */
enum hvd_socket_side {
    HVD_SOCKET_ACCEPTED,
    HVD_SOCKET_CONNECTED,
};
struct hvd_socket_endpoint hvd_socket_endpoint_of(int fd, enum hvd_socket_side side);

/* Waits for poll's events until the deadline (-1: none). False when the time is over;
 * true also after a signal. */
bool hvd_socket_wait(int fd, short events, int64_t deadline_ms);

/* Whether bytes that were sent are not yet with the other host: a TCP socket that is
 * closed while unread bytes lie in it throws them away. */
bool hvd_socket_is_unsent(int fd);

/* On a socket that blocks, whole or not at all: 0, or HVD_ERR_SYS with errno; errno is 0
 * when the other end closed and EAGAIN when the socket's time limit passed. Never raises
 * SIGPIPE. */
int hvd_socket_send(int fd, const void *data, size_t bytes);
int hvd_socket_receive(int fd, void *data, size_t bytes);

/* For a TCP connection that may carry more than the other end's receive buffer takes:
 * waits for an end that is stopped as long as it takes. A host that vanishes is still
 * noticed while the connection is idle, else only after minutes. */
void hvd_socket_be_patient(int fd);

#endif
