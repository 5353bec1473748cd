/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/hvdrun/discovery.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_binding/base/log.h"
#include "pmix_boot/hvdrun/hosts.h"

/* How often to run the command, the same as in Horovod, and how often to read its output
 * while it runs. */
static const int every_ms = 1000;
static const int look_ms = 20;
/* A command that runs for longer hangs. Horovod waits for ever. */
static const int longest_ms = 60000;

enum {
    TEXT_BYTES = 65536 /* a command must print less */
};

static const char too_much[] = "the command printed 64 KiB or more";

struct hvdrun_discovery {
    const char *command; /* borrowed */
    char own[256];
    int default_slots;
    pid_t pid; /* 0: not running */
    int fd;
    long long next_ms;
    long long started_ms;
    /* why the command was killed; NULL: it was not */
    const char *killed_because;
    char text[TEXT_BYTES + 1];
    size_t bytes;
    int slots;
    bool has_failed; /* a failure has been logged */
};

static int read_line(char *line, const char *own, int default_slots,
                     struct hvd_error *err)
{
    struct hvdrun_host *hosts;
    bool has_number = strchr(line, ':') != NULL;
    int count = hvdrun_hosts_parse(line, &hosts, err);
    int slots = 0;

    if (count < 0) {
        return count;
    }
    if (count == 1 && hvdrun_host_is_local(hosts[0].name, own)) {
        slots = has_number || default_slots == 0 ? hosts[0].slots : default_slots;
    }
    free(hosts);
    return slots;
}

int hvdrun_discovery_read(char *text, const char *own, int default_slots,
                          struct hvd_error *err)
{
    char *save = NULL;
    int slots = 0;

    for (char *line = strtok_r(text, " \t\r\n", &save); line != NULL;
         line = strtok_r(NULL, " \t\r\n", &save)) {
        int more = read_line(line, own, default_slots, err);

        if (more < 0) {
            return more;
        }
        slots += more;
    }
    return slots;
}

/* Checks that the file with which the command begins can be run. Checks nothing if the
 * first word needs the shell or is looked up in PATH. */
static int check_file(const char *command, struct hvd_error *err)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-+.,@%/";
    size_t length = strspn(command, plain);
    bool is_plain = command[length] == '\0' || strchr(" \t\n", command[length]) != NULL;
    char file[PATH_MAX];
    struct stat status;

    if (!is_plain || memchr(command, '/', length) == NULL || length >= sizeof(file)) {
        return 0;
    }
    memcpy(file, command, length);
    file[length] = '\0';
    if (stat(file, &status) == 0 && S_ISDIR(status.st_mode)) {
        errno = EISDIR;
    } else if (access(file, X_OK) == 0) {
        return 0;
    }
    return hvd_fail(err, HVD_ERR_ARG,
                    "--host-discovery-script: cannot run %s: %m; give a program that "
                    "prints lines HOST or HOST:SLOTS",
                    file);
}

int hvdrun_discovery_create(const char *command, int default_slots,
                            struct hvdrun_discovery **out, struct hvd_error *err)
{
    struct hvdrun_discovery *discovery;
    int status = check_file(command, err);

    if (status < 0) {
        return status;
    }
    discovery = calloc(1, sizeof(*discovery));
    if (discovery == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for --host-discovery-script");
    }
    discovery->command = command;
    discovery->default_slots = default_slots;
    discovery->fd = -1;
    discovery->slots = -1;
    (void)gethostname(discovery->own, sizeof(discovery->own) - 1);
    *out = discovery;
    return 0;
}

static int start_command(struct hvdrun_discovery *discovery)
{
    char *arguments[] = {"sh", "-c", (char *)discovery->command, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    int ends[2];
    int error;

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return HVD_ERR_SYS;
    }
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigmask(&attributes, &none);
    error = posix_spawn(&discovery->pid, "/bin/sh", &actions, &attributes, arguments,
                        environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error != 0) {
        close(ends[0]);
        discovery->pid = 0;
        return HVD_ERR_SYS;
    }
    discovery->fd = ends[0];
    discovery->bytes = 0;
    discovery->killed_because = NULL;
    return 0;
}

void hvdrun_discovery_destroy(struct hvdrun_discovery *discovery)
{
    if (discovery == NULL) {
        return;
    }
    if (discovery->pid > 0) {
        kill(-discovery->pid, SIGKILL);
        while (waitpid(discovery->pid, NULL, 0) < 0 && errno == EINTR) {
        }
        close(discovery->fd);
    }
    free(discovery);
}

static bool fail_discovery(struct hvdrun_discovery *discovery, const char *reason)
{
    if (!discovery->has_failed) {
        discovery->has_failed = true;
        hvd_log(HVD_LOG_WARN, "--host-discovery-script %s: %s; trying again",
                discovery->command, reason);
    }
    return false;
}

/* Reads the answer of a command that has ended. Returns false if it failed. */
static bool conclude_command(struct hvdrun_discovery *discovery, int wait_status)
{
    struct hvd_error err;
    int slots;

    close(discovery->fd);
    discovery->pid = 0;
    if (discovery->killed_because != NULL) {
        return fail_discovery(discovery, discovery->killed_because);
    }
    if (discovery->bytes == TEXT_BYTES) {
        return fail_discovery(discovery, too_much);
    }
    if (wait_status != 0) {
        return fail_discovery(discovery, "the command failed");
    }
    discovery->text[discovery->bytes] = '\0';
    slots = hvdrun_discovery_read(discovery->text, discovery->own,
                                  discovery->default_slots, &err);
    if (slots < 0) {
        return fail_discovery(discovery, err.text);
    }
    discovery->slots = slots;
    return true;
}

/* Reads what has arrived. Returns true if nothing more will be read: at the end of the
 * output, with a full buffer, or after an error. */
static bool read_some(struct hvdrun_discovery *discovery)
{
    for (;;) {
        size_t room = TEXT_BYTES - discovery->bytes;
        ssize_t bytes =
            room > 0 ? read(discovery->fd, discovery->text + discovery->bytes, room) : 0;

        if (bytes > 0) {
            discovery->bytes += (size_t)bytes;
        } else if (bytes == 0) {
            return true;
        } else if (errno != EINTR) {
            return errno != EAGAIN;
        }
    }
}

/* Kills the command if it prints too much or runs for too long; its end is noticed
 * later. */
static void kill_excess(struct hvdrun_discovery *discovery, long long now_ms)
{
    if (discovery->killed_because != NULL) {
        return;
    }
    if (discovery->bytes == TEXT_BYTES) {
        discovery->killed_because = too_much;
    } else if (now_ms - discovery->started_ms >= longest_ms) {
        discovery->killed_because = "the command ran for 60 s and was killed";
    }
    if (discovery->killed_because != NULL) {
        kill(-discovery->pid, SIGKILL);
    }
}

bool hvdrun_discovery_progress(struct hvdrun_discovery *discovery, long long now_ms)
{
    int wait_status = 0;

    if (discovery->pid == 0 && now_ms >= discovery->next_ms) {
        discovery->next_ms = now_ms + every_ms;
        if (start_command(discovery) < 0) {
            return fail_discovery(discovery, strerror(errno));
        }
        discovery->started_ms = now_ms;
    }
    if (discovery->pid > 0 &&
        (discovery->killed_because != NULL || read_some(discovery)) &&
        waitpid(discovery->pid, &wait_status, WNOHANG) == discovery->pid) {
        discovery->next_ms = now_ms + every_ms;
        return conclude_command(discovery, wait_status);
    }
    if (discovery->pid > 0) {
        kill_excess(discovery, now_ms);
        discovery->next_ms = now_ms + look_ms;
    }
    return false;
}

int hvdrun_discovery_slots(const struct hvdrun_discovery *discovery)
{
    return discovery->slots;
}

long long hvdrun_discovery_next_ms(const struct hvdrun_discovery *discovery)
{
    return discovery->next_ms;
}
