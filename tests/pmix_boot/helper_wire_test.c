/* SPDX-License-Identifier: Apache-2.0 */
/* What libhvd and hvd-boot send each other is whole, or there is a reason. */
#include "pmix_boot/helper_wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/tap.h"

static void open_wire(int ends[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
        printf("Bail out! socketpair: %s\n", strerror(errno));
        exit(1);
    }
}

static void test_whole(void)
{
    char text[8] = "";
    int ends[2];

    open_wire(ends);
    tap_ok(hvd_wire_send(ends[0], "abc", 3) == 0 &&
               hvd_wire_send(ends[0], "defg", 5) == 0 &&
               hvd_wire_receive(ends[1], text, sizeof(text)) == 0 &&
               strcmp(text, "abcdefg") == 0,
           "what comes in parts is received whole");
    close(ends[0]);
    close(ends[1]);
}

static void test_closed(void)
{
    char text[8];
    int ends[2];

    open_wire(ends);
    hvd_wire_send(ends[0], "abc", 3);
    close(ends[0]);
    errno = EBADF;
    tap_ok(hvd_wire_receive(ends[1], text, sizeof(text)) == HVD_ERR_SYS && errno == 0,
           "an end that closed half-way is told by errno 0");
    tap_ok(hvd_wire_send(ends[1], "abc", 3) == HVD_ERR_SYS && errno == EPIPE,
           "to send to it fails, without a signal");
    close(ends[1]);
}

static void test_limit(void)
{
    const struct timeval limit = {.tv_usec = 1000};
    char text[8];
    int ends[2];

    open_wire(ends);
    setsockopt(ends[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    tap_ok(hvd_wire_receive(ends[1], text, sizeof(text)) == HVD_ERR_SYS &&
               errno == EAGAIN,
           "a time limit that passed is told by EAGAIN");
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    test_whole();
    test_closed();
    test_limit();
    return tap_done();
}
