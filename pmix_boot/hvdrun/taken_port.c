/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/hvdrun/taken_port.h"

#include <errno.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/error.h"

/* TCP_LISTEN of the kernel, as its tables print it. */
#define STATE_LISTEN 0x0A

/* Tries to bind a second socket to the address of held_fd, as torch.distributed would for
 * its store. A search for listeners is not enough: a process can also block the port
 * without listening, and then appears in no table of the kernel. */
static bool is_taken(int held_fd)
{
    const int on = 1, off = 0;
    struct sockaddr_storage address = {0};
    socklen_t bytes = sizeof(address);
    bool is_refused;
    int fd;

    if (getsockname(held_fd, (struct sockaddr *)&address, &bytes) != 0) {
        return false;
    }
    fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    if (address.ss_family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    is_refused = bind(fd, (struct sockaddr *)&address, bytes) != 0 && errno == EADDRINUSE;
    close(fd);
    return is_refused;
}

/* A line is
 *   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1001 ...
 * addresses and ports, state, queues, timer, retransmits, user. */
bool hvdrun_taken_port_user(FILE *table, uint16_t port, uid_t *user)
{
    char line[512];
    unsigned local, state, owner;

    while (fgets(line, sizeof(line), table) != NULL) {
        if (sscanf(line, " %*u: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x %*x:%*x %*x:%*x %*x %u",
                   &local, &state, &owner) == 3 &&
            state == STATE_LISTEN && local == port) {
            *user = owner;
            return true;
        }
    }
    return false;
}

static bool find_user(const char *path, uint16_t port, uid_t *user)
{
    FILE *table = fopen(path, "re");
    bool is_found = table != NULL && hvdrun_taken_port_user(table, port, user);

    if (table != NULL) {
        fclose(table);
    }
    return is_found;
}

static void describe_user(uint16_t port, char *text, size_t bytes)
{
    const struct passwd *entry;
    uid_t user;

    if (!find_user("/proc/net/tcp", port, &user) &&
        !find_user("/proc/net/tcp6", port, &user)) {
        snprintf(text, bytes, "a process that does not listen");
        return;
    }
    entry = getpwuid(user);
    if (entry != NULL) {
        snprintf(text, bytes, "user %u (%s)", (unsigned)user, entry->pw_name);
    } else {
        snprintf(text, bytes, "user %u", (unsigned)user);
    }
}

int hvdrun_taken_port_check(int held_fd, uint16_t port, struct hvd_error *err)
{
    char user[128];

    if (!is_taken(held_fd)) {
        return 0;
    }
    describe_user(port, user, sizeof(user));
    return hvd_fail(err, HVD_ERR_SYS,
                    HVD_ENV_MASTER_PORT " %u, which hvd had reserved for this job, is in "
                                        "use by %s: start the job again",
                    port, user);
}
