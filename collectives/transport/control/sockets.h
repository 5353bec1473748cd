/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets of the control network: listening, dialling, accepting; all non-blocking and
 * close-on-exec.
 *
 * TCP sockets notice a vanished host by themselves: the kernel probes an idle connection, and
 * ends it when nothing came back for HVD_DEAD_AFTER_MS. A process that is merely stopped still
 * answers, by its kernel, as long as its receive buffer has room. */
#ifndef HVD_SOCKETS_H
#define HVD_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/transport/control/interfaces.h"

/* Probes leave each second, so that silence is noticed within 4 s: below the 5 s in which
 * every rank is to know, above what a switch needs to fail over a link. */
#define HVD_DEAD_AFTER_MS 3500

#define HVD_SOCKET_NAME_BYTES 24

/* Listens on all addresses; *port gets the port. */
int hvd_listen_tcp(int *fd, uint16_t *port, struct hvd_error *err);

/* Listens under a random abstract name, which name receives. */
int hvd_listen_unix(int *fd, char name[HVD_SOCKET_NAME_BYTES], struct hvd_error *err);

/* Takes one connection: a descriptor, or -1 with errno when there is none. On a unix socket a
 * process of another user is turned away, with EPERM. */
int hvd_accept(int listening_fd);

/* Starts to connect: a descriptor, which is writable when the attempt has ended and
 * hvd_dialled tells how; or -1 with errno. */
int hvd_dial_tcp(const struct hvd_ip *ip, uint16_t port);
int hvd_dial_unix(const char name[HVD_SOCKET_NAME_BYTES]);

/* 0, or the errno with which the attempt failed. */
int hvd_dialled(int fd);

/* Whether bytes that were sent are not yet with the other host: a TCP socket that is closed
 * while unread bytes lie in it throws them away. */
bool hvd_socket_is_unsent(int fd);

/* "10.0.0.1 port 4711". text has room for 64 bytes. */
void hvd_ip_print(const struct hvd_ip *ip, uint16_t port, char *text);

#endif
