/* SPDX-License-Identifier: Apache-2.0 */
/* Whole sends and receives on a stream socket. */
#include "pmix_boot/helper_wire.h"

#include <errno.h>
#include <sys/socket.h>

int hvd_wire_send(int fd, const void *data, size_t bytes)
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

int hvd_wire_receive(int fd, void *data, size_t bytes)
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
