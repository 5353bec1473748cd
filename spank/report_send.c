/* SPDX-License-Identifier: Apache-2.0 */
/* The node side of the reports: connect to srun, write, close; never wait long. */
#include "spank/report.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* srun and the nodes are up and near each other; longer means that a firewall is between. */
enum {
    WAIT_S = 2
};

/* SO_SNDTIMEO limits connect() too. */
static int connect_to(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                             .ai_socktype = SOCK_STREAM};
    struct timeval limit = {.tv_sec = WAIT_S};
    struct addrinfo *found = NULL;
    int fd;

    if (getaddrinfo(host, port, &hints, &found) != 0) {
        errno = EINVAL;
        return -1;
    }
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
        if (connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    return fd;
}

static int send_all(int fd, const char *text, size_t length)
{
    size_t sent = 0;

    while (sent < length) {
        ssize_t rc = send(fd, text + sent, length - sent, MSG_NOSIGNAL);

        if (rc < 0 && errno != EINTR) {
            return -1;
        }
        sent += rc > 0 ? (size_t)rc : 0;
    }
    return 0;
}

/* Reads "port:key". */
static int split_address(const char *address, char port[8], char key[64])
{
    return sscanf(address, "%7[0-9]:%63[0-9a-f]", port, key) == 2 ? 0 : -1;
}

int hvd_report_send(const char *host, const char *address, const char *text,
                    struct hvd_error *err)
{
    char name[65] = "";
    char head[160];
    char port[8];
    char key[64];
    int fd;
    int rc;

    if (split_address(address, port, key) != 0) {
        return hvd_fail(err, HVD_ERR_ARG, "the address of srun is not understood");
    }
    fd = connect_to(host, port);
    if (fd < 0) {
        return hvd_fail(err, HVD_ERR_NET, "cannot reach srun on %s: %m", host);
    }
    gethostname(name, sizeof(name) - 1);
    snprintf(head, sizeof(head), "%s %s\n", key, name);
    rc = send_all(fd, head, strlen(head)) != 0 || send_all(fd, text, strlen(text)) != 0
             ? hvd_fail(err, HVD_ERR_NET, "cannot write to srun on %s: %m", host)
             : 0;
    close(fd);
    return rc;
}
