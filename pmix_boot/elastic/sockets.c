/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/elastic/sockets.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    PROBE_SECONDS = 1,
    PROBES = 3,
    DEAD_AFTER_MS = 3500,
};

/* Between two attempts to reach a service that does not listen yet. */
static const int pause_ms = 200;

int64_t hvd_elastic_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void hvd_elastic_keep_alive(int fd)
{
    const int on = 1;
    const int seconds = PROBE_SECONDS;
    const int probes = PROBES;
    const unsigned dead_after_ms = DEAD_AFTER_MS;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead_after_ms, sizeof(dead_after_ms));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

bool hvd_elastic_wait_for(int fd, short events, int64_t deadline_ms)
{
    struct pollfd polled = {.fd = fd, .events = events};
    int64_t left = deadline_ms - hvd_elastic_now_ms();

    if (deadline_ms < 0) {
        return poll(&polled, 1, -1) > 0 || errno == EINTR;
    }
    return left > 0 && (poll(&polled, 1, (int)left) > 0 || errno == EINTR);
}

static int connected(int fd, int64_t deadline_ms)
{
    int error = 0;
    socklen_t length = sizeof(error);

    if (!hvd_elastic_wait_for(fd, POLLOUT, deadline_ms)) {
        error = ETIMEDOUT;
    } else {
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    }
    errno = error;
    return error == 0 ? 0 : -1;
}

/* A connected socket that does not block, or -1 with errno. */
static int dial(const struct addrinfo *place, int64_t deadline_ms)
{
    int fd = socket(place->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int saved;

    if (fd < 0) {
        return -1;
    }
    hvd_elastic_keep_alive(fd);
    if (connect(fd, place->ai_addr, place->ai_addrlen) == 0 ||
        (errno == EINPROGRESS && connected(fd, deadline_ms) == 0)) {
        return fd;
    }
    saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

int hvd_elastic_dial(const struct hvd_elastic_address *address, int64_t deadline_ms,
                     struct hvd_error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *places = NULL;
    int fd = -1;
    int error = getaddrinfo(address->host, address->port, &hints, &places);

    if (error != 0) {
        return hvd_fail(err, HVD_ERR_NET, "no host %s for the elastic service: %s",
                        address->host, gai_strerror(error));
    }
    while (fd < 0) {
        for (const struct addrinfo *place = places; place != NULL && fd < 0;
             place = place->ai_next) {
            fd = dial(place, deadline_ms);
        }
        if (fd < 0 && hvd_elastic_now_ms() + pause_ms >= deadline_ms) {
            break;
        }
        if (fd < 0) {
            poll(NULL, 0, pause_ms);
        }
    }
    freeaddrinfo(places);
    return fd >= 0
               ? fd
               : hvd_fail(err, HVD_ERR_NET,
                          "cannot reach the elastic service on %s port %s: %m; is the "
                          "srun or hvdrun that started the job still there?",
                          address->host, address->port);
}
