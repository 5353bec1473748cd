/* SPDX-License-Identifier: Apache-2.0 */
/* Stream sockets: listening, connecting, accepting. Listening sockets and connections do
 * not block, and are closed on exec.
 *
 * TCP connections notice a vanished host: the kernel probes an idle connection, and ends
 * it if no answer comes for HVD_SOCKET_DEAD_AFTER_MS. A stopped process does not count as
 * vanished: its kernel answers for it while its receive buffer has room (see
 * hvd_socket_be_patient). */
#ifndef HVD_SOCKET_H
#define HVD_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pmix_boot/sock/interfaces.h"
#include "pmix_boot/sock/port_range.h"

/* Probes are sent every second, so that silence is noticed within 4 s. This is less than
 * the 5 s within which every rank must know of a failure, and more than a switch needs to
 * fail over to another link. */
#define HVD_SOCKET_DEAD_AFTER_MS 3500

#define HVD_SOCKET_NAME_BYTES 24

/* Address and port of the listening end of a connection, as one of the two ends sees
 * them. The ends see different ones if something between them translates addresses or
 * relays. There is no padding, because this is sent and proofs cover it. */
struct hvd_socket_endpoint {
    /* version 0: a unix socket, whose user the kernel tells us */
    struct hvd_ip ip;
    unsigned char zero;
    uint16_t port;
};

/* The largest number of addresses in a list. */
#define HVD_SOCKET_ADDRESSES 16

struct hvd_socket_address {
    struct hvd_ip addresses[HVD_SOCKET_ADDRESSES];
    int count; /* number of addresses; 0: listen at all addresses of this machine */
    struct hvd_port_range ports;
};

/* 127.0.0.1, which only processes of this machine can reach. */
extern const struct hvd_socket_address hvd_socket_loopback;

/* Returns how many sockets listen: one for each address, or one for all. */
int hvd_socket_address_count(const struct hvd_socket_address *address);

/* Listens at all addresses on one port. fds gets hvd_socket_address_count() descriptors,
 * *port gets the port. */
int hvd_socket_listen_tcp(const struct hvd_socket_address *address, int *fds,
                          uint16_t *port, struct hvd_error *err);

/* Listens on a unix socket with a random abstract name, and writes the name. */
int hvd_socket_listen_unix(int *fd, char name[HVD_SOCKET_NAME_BYTES],
                           struct hvd_error *err);

/* Listens on a unix socket at a path, which must not exist. The path should be in a
 * directory that only the user may enter. Processes in other network namespaces can
 * connect, too. */
int hvd_socket_listen_path(const char *path, int *fd, struct hvd_error *err);

/* Returns whether a path is absolute and short enough for hvd_socket_listen_path. */
bool hvd_socket_path_fits(const char *path);

/* Accepts one connection. Returns its descriptor, or -1 with errno if there is none. On a
 * unix socket, a process of another user is rejected with EPERM. */
int hvd_socket_accept(int listening_fd);

/* Returns whether accept failed with this errno for lack of descriptors or memory. The
 * connection stays in the kernel's queue and the listening socket readable: wait before
 * you accept again. */
bool hvd_socket_is_out_of_room(int error);

/* Start to connect. They return a descriptor, or -1 with errno. The descriptor becomes
 * writable when the attempt has ended; hvd_socket_connect_error then returns the result.
 * If another user listens on a unix socket, errno is EPERM. */
int hvd_socket_connect_tcp(const struct hvd_ip *ip, uint16_t port);
int hvd_socket_connect_unix(const char name[HVD_SOCKET_NAME_BYTES]);

/* Returns 0, or the errno with which the attempt failed. */
int hvd_socket_connect_error(int fd);

/* Connects to a host (name or number), and tries again until the deadline (hvd_clock_ms)
 * if nobody listens yet. A host that begins with a slash is the path of a unix socket.
 * Returns a descriptor, or HVD_ERR_NET. */
int hvd_socket_connect_host(const char *host, const char *port, int64_t deadline_ms,
                            struct hvd_error *err);

/* The listening end of a TCP or unix connection that this process has accepted, or to
 * which it has connected. */
enum hvd_socket_side {
    HVD_SOCKET_ACCEPTED,
    HVD_SOCKET_CONNECTED,
};
struct hvd_socket_endpoint hvd_socket_endpoint_of(int fd, enum hvd_socket_side side);

/* Waits for poll's events until the deadline (-1: none). Returns false when the time is
 * over, and true also after a signal. */
bool hvd_socket_wait(int fd, short events, int64_t deadline_ms);

/* Returns whether sent bytes have not yet reached the other host. Closing a TCP socket
 * that still holds unread bytes discards such unsent bytes. */
bool hvd_socket_is_unsent(int fd);

/* Send or receive all bytes on a blocking socket. They return 0, or HVD_ERR_SYS with
 * errno, which is 0 if the other end closed and EAGAIN if the socket's time limit passed.
 * They never raise SIGPIPE. */
int hvd_socket_send(int fd, const void *data, size_t bytes);
int hvd_socket_receive(int fd, void *data, size_t bytes);

/* Lets a TCP connection wait without limit for a process that is stopped. Use it if the
 * connection may carry more than the other end's receive buffer holds, and if another
 * connection tells of vanished hosts: this one then notices them only after 30 to 40 s
 * while it is idle, otherwise after minutes. It also survives a host that is so busy that
 * its kernel does not answer for seconds: seen with 128 ranks per core. */
void hvd_socket_be_patient(int fd);

#endif
