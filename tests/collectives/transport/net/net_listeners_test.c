/* SPDX-License-Identifier: Apache-2.0 */
/* Who has connected before the filter was there is sent away, and nothing of theirs is read. */
#include "collectives/transport/net/net_listeners.h"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/tap.h"

enum {
    LIMIT_MS = 20000
};

static const char noise[] = "noise";

/* At a port of 127.0.0.1, which goes to *address. */
static int start_listening(struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    socklen_t bytes = sizeof(*address);

    *address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (fd < 0 || bind(fd, (struct sockaddr *)address, bytes) != 0 ||
        listen(fd, 8) != 0 || getsockname(fd, (struct sockaddr *)address, &bytes) != 0) {
        printf("Bail out! no listening socket: %m\n");
        exit(EXIT_FAILURE);
    }
    return fd;
}

static int connect_to(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0 ||
        send(fd, noise, sizeof(noise), 0) != (ssize_t)sizeof(noise)) {
        printf("Bail out! no connection: %m\n");
        exit(EXIT_FAILURE);
    }
    return fd;
}

static bool is_readable(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    return poll(&poll_fd, 1, LIMIT_MS) == 1;
}

static int accept_one(int listener)
{
    int fd = is_readable(listener) ? accept(listener, NULL, NULL) : -1;

    return fd >= 0 && is_readable(fd) ? fd : -1; /* what was said is there */
}

/* The other side has closed it, or refused what came. */
static bool has_ended(int fd)
{
    char byte;

    return is_readable(fd) && recv(fd, &byte, 1, 0) <= 0;
}

int main(void)
{
    struct sockaddr_in address, other_address;
    struct hvd_net_listeners listeners = {.count = 1};
    int other = start_listening(&other_address);
    int friend_fd, friend_there, accepted, early, late;
    char data[sizeof(noise)];

    listeners.fds[0] = start_listening(&address);
    friend_fd = connect_to(&other_address);
    friend_there = accept_one(other);
    early = connect_to(&address);
    accepted = accept_one(listeners.fds[0]);
    late = connect_to(&address);
    tap_ok(accepted >= 0 && is_readable(listeners.fds[0]),
           "(one is accepted, another waits for it)");
    hvd_net_listeners_clear(&listeners);
    tap_ok(
        recv(accepted, data, sizeof(data), 0) == 0,
        "of what the first has said nothing can be read: the connection is at its end");
    tap_ok(has_ended(early), "it sees that");
    tap_ok(accept(listeners.fds[0], NULL, NULL) < 0 && has_ended(late),
           "the second is not accepted any more");
    tap_ok(recv(friend_there, data, sizeof(data), 0) == (ssize_t)sizeof(noise) &&
               send(friend_there, data, 1, 0) == 1 && is_readable(friend_fd) &&
               recv(friend_fd, data, 1, 0) == 1,
           "connections to other sockets go on");
    close(connect_to(&address));
    tap_ok(accept_one(listeners.fds[0]) >= 0, "and so does the listening socket");
    return tap_done();
}
