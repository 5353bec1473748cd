/* SPDX-License-Identifier: Apache-2.0 */
/* A held port that another process takes; hvdrun reads that process's user in the
 * kernel's tables. */
#include "pmix_boot/hvdrun/taken_port.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpu_binding/base/error.h"
#include "pmix_boot/held_port.h"
#include "tests/tap.h"

#define NOBODY ((uid_t)-1)

static uid_t read_user(const char *text, uint16_t port)
{
    FILE *table = fmemopen((char *)text, strlen(text), "r");
    uid_t user = NOBODY;
    bool is_found = hvdrun_taken_port_user(table, port, &user);

    fclose(table);
    return is_found ? user : NOBODY;
}

static void test_tables(void)
{
    const char *v4 =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   "
        "uid  timeout inode                                                     \n"
        "   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     "
        "0        0 561 1 0000000000000000 100 0 0 10 0                         \n"
        "  12: 0100007F:A113 0100007F:D5F2 01 00000000:00000000 02:0000014C 00000000  "
        "1002        0 4179261 2 0000000000000000 20 4 30 10 -1                 \n"
        " 113: 0100007F:A113 00000000:0000 0A 00000000:00000080 00:00000000 00000000  "
        "1001        0 4179262 1 0000000000000000 100 0 0 10 0                  \n";
    const char *v6 =
        "   0: 00000000000000000000000000000000:E80D "
        "00000000000000000000000000000000:0000 "
        "0A 00000000:00000000 00:00000000 00000000 4294967294        0 4179261 1 "
        "0000000000000000 100 0 0 10 0\n";

    tap_ok(read_user(v4, 22) == 0, "root's listener");
    tap_ok(read_user(v4, 0xA113) == 1001,
           "a user's listener, and not a connection of another user to the port");
    tap_ok(read_user(v4, 0xD5F2) == NOBODY,
           "the other end of a connection is not a listener");
    tap_ok(read_user(v6, 0xE80D) == 4294967294U,
           "a listener on IPv6, with a large user id");
    tap_ok(read_user(v6, 22) == NOBODY && read_user("", 22) == NOBODY &&
               read_user("nonsense\n", 22) == NOBODY,
           "a port without a listener");
}

/* Binds to the port by its number, as any other process can. */
static int take(uint16_t port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&in, sizeof(in)) != 0) {
        tap_note("cannot bind to %u", port);
    }
    return fd;
}

static bool says(int held, uint16_t port, const char *wanted)
{
    struct hvd_error err = {0};
    int status = hvdrun_taken_port_check(held, port, &err);

    tap_note("%s", err.text);
    return status == HVD_ERR_SYS && strstr(err.text, wanted) != NULL;
}

int main(void)
{
    const int off = 0;
    char user[64];
    uint16_t port = 0;
    int held = -1, other;

    test_tables();
    if (hvd_held_port_open((struct hvd_port_range){0}, &held, &port, NULL) < 0) {
        tap_ok(false, "a port is held");
        return tap_done();
    }
    tap_ok(hvdrun_taken_port_check(held, port, NULL) == 0, "a held port is not taken");
    other = take(port);
    tap_ok(hvdrun_taken_port_check(held, port, NULL) == 0,
           "a process that shares the port has not taken it");
    listen(other, 1);
    snprintf(user, sizeof(user), "in use by user %u", (unsigned)getuid());
    tap_ok(says(held, port, user), "a process that listens on the port has taken it");
    close(other);
    other = take(port);
    setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &off, sizeof(off));
    tap_ok(says(held, port, "a process that does not listen"),
           "a process that stops sharing the port has taken it, too");
    close(other);
    tap_ok(hvdrun_taken_port_check(held, port, NULL) == 0, "the port is free again");
    close(held);
    return tap_done();
}
