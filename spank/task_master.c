/* SPDX-License-Identifier: Apache-2.0 */
/* Where rank 0 serves the store of torch.distributed. The program inherits the socket that holds the
 * port: as long as it lives, the kernel gives the port to nobody who asks for any. Questions to the
 * service are those of a program of its own, as the plugin does without libsodium. */
#include "spank/task_master.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/env.h"
#include "pmix_boot/held_port.h"
#include "pmix_boot/route.h"
#include "spank/plugin.h"
#include "spank/task_environment.h"
#include "spank/task_init.h"

enum {
    PLACE_BYTES = 136, /* "ADDRESS PORT" */
    HANG_MS =
        20000, /* the program gives up after ten seconds, unless a name server is slow */
    FIRST_HELD = 200 /* of descriptors: scripts use those below ten */
};

static bool has(const struct hvd_spank_task *task, const char *name)
{
    char text[8];

    return spank_getenv(task->spank, name, text, sizeof(text)) != ESPANK_ENV_NOEXIST;
}

/* --- the step's service --- */

/* One rank of a node tells the user what went wrong. */
static int spawn(const struct hvd_spank_task *task, char *const *arguments, int output,
                 pid_t *pid)
{
    char service[sizeof(HVD_ENV_RENDEZVOUS) + 640] = HVD_ENV_RENDEZVOUS "=";
    char *const environment[] = {service, NULL};
    size_t used = strlen(service);
    posix_spawn_file_actions_t actions;
    int error;

    if (spank_getenv(task->spank, HVD_ENV_RENDEZVOUS, service + used,
                     (int)(sizeof(service) - used)) != ESPANK_SUCCESS) {
        return HVD_ERR_STATE;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (task->placement.local_rank != 0) {
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY,
                                         0);
    }
    error = posix_spawn(pid, arguments[0], &actions, NULL, arguments, environment);
    posix_spawn_file_actions_destroy(&actions);
    return error == 0 ? 0 : HVD_ERR_SYS;
}

/* A line; false if there is none in time. */
static bool read_line(int fd, char *line, size_t size)
{
    const int64_t deadline_ms = hvd_clock_ms() + HANG_MS;
    size_t length = 0;

    while (length < size - 1 && (length == 0 || line[length - 1] != '\n')) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        const int64_t left_ms = deadline_ms - hvd_clock_ms();
        ssize_t bytes;

        if (left_ms <= 0) {
            return false;
        }
        if (poll(&wait, 1, (int)left_ms) <= 0) {
            continue;
        }
        bytes = read(fd, line + length, size - 1 - length);
        if (bytes <= 0) {
            return false;
        }
        length += (size_t)bytes;
    }
    if (line[length - 1] != '\n') {
        return false;
    }
    line[length - 1] = '\0';
    return true;
}

/* Posts the place, or asks for it where place is empty; false without an answer. */
static bool ask_service(const struct hvd_spank_task *task, char place[PLACE_BYTES])
{
    char *arguments[] = {(char *)task->plugin->rendezvous_program,
                         place[0] != '\0' ? "post" : "ask",
                         place[0] != '\0' ? place : NULL, NULL};
    char line[PLACE_BYTES];
    bool is_told = false;
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    if (spawn(task, arguments, ends[1], &pid) == 0) {
        close(ends[1]);
        ends[1] = -1;
        is_told = read_line(ends[0], line, sizeof(line));
        kill(pid, SIGKILL); /* it has nothing left to do */
        waitpid(pid, NULL, 0);
    }
    close(ends[0]);
    if (ends[1] >= 0) {
        close(ends[1]);
    }
    if (is_told) {
        snprintf(place, PLACE_BYTES, "%s", line);
    }
    return is_told;
}

/* --- rank 0 --- */

/* The address of this node on the network by which it reaches srun, as Slurm itself does. */
static void find_address(const struct hvd_spank_task *task, char *address, size_t size)
{
    char peer[64] = "";
    struct hvd_route route;

    if (task->placement.tasks == task->placement.local_size) {
        snprintf(address, size, "127.0.0.1");
        return;
    }
    spank_getenv(task->spank, HVD_ENV_SLURM_SRUN_HOST, peer, sizeof(peer));
    if (hvd_route_find(peer, &route, NULL) == 0 && strcmp(route.interface, "lo") != 0) {
        snprintf(address, size, "%s", route.address);
        return;
    }
    address[0] = '\0';
    gethostname(address, size - 1);
    address[size - 1] = '\0';
}

/* Holds a port and tells the others. The socket stays open, for the program. */
static bool offer(const struct hvd_spank_task *task, char place[PLACE_BYTES])
{
    char address[65];
    struct hvd_error err;
    uint16_t port;
    int held;
    int fd;

    if (hvd_held_port_open(&fd, &port, &err) != 0) {
        fprintf(stderr,
                "hvd: " HVD_ENV_MASTER_ADDRESS " and " HVD_ENV_MASTER_PORT
                " stay unset: %s\n",
                err.text);
        return false;
    }
    find_address(task, address, sizeof(address));
    snprintf(place, PLACE_BYTES, "%s %u", address, (unsigned)port);
    if (task->placement.tasks > 1 && !ask_service(task, place)) {
        close(fd);
        return false;
    }
    held = fcntl(fd, F_DUPFD, FIRST_HELD);
    if (held < 0) {
        held = fcntl(fd, F_DUPFD, STDERR_FILENO + 1);
    }
    close(fd);
    return held >= 0;
}

/* --- all --- */

void hvd_spank_task_export_master(const struct hvd_spank_task *task)
{
    char place[PLACE_BYTES] = "";
    bool has_place;
    char *port;

    if (task->plugin->options.is_elastic ||
        (has(task, HVD_ENV_MASTER_ADDRESS) && has(task, HVD_ENV_MASTER_PORT)) ||
        (task->placement.tasks > 1 && !has(task, HVD_ENV_RENDEZVOUS))) {
        return;
    }
    has_place = task->rank == 0 ? offer(task, place) : ask_service(task, place);
    port = has_place ? strchr(place, ' ') : NULL;
    if (port != NULL) {
        *port++ = '\0';
        hvd_spank_task_set_default(task, HVD_ENV_MASTER_ADDRESS, place);
        hvd_spank_task_set_default(task, HVD_ENV_MASTER_PORT, port);
    }
}
