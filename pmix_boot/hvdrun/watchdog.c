/* SPDX-License-Identifier: Apache-2.0 */
/* The watchdog reads process groups from a pipe. A zero means that hvdrun ends in order;
 * the end of the pipe without a zero means that hvdrun died. */
#include "pmix_boot/hvdrun/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"

/* Largest number of descriptors that nftw opens at the same time. */
#define WALK_DEPTH 16

static int make_directory(char *path, size_t bytes, struct hvd_error *err)
{
    const char *parent = getenv(HVD_ENV_TMPDIR);
    int length;

    parent = parent != NULL && parent[0] != '\0' ? parent : "/tmp";
    length = snprintf(path, bytes, "%s/hvdrun.XXXXXX", parent);
    if (length < 0 || (size_t)length >= bytes) {
        errno = ENAMETOOLONG;
    } else if (mkdtemp(path) != NULL) {
        return 0;
    }
    return hvd_fail(err, HVD_ERR_SYS, "cannot make a directory in %s: %m; set %s", parent,
                    HVD_ENV_TMPDIR);
}

static int remove_entry(const char *path, const struct stat *status, int type,
                        struct FTW *place)
{
    (void)status;
    (void)type;
    (void)place;
    (void)remove(path);
    return 0;
}

static void remove_directory(const char *path)
{
    (void)nftw(path, remove_entry, WALK_DEPTH, FTW_DEPTH | FTW_PHYS);
}

/* Reads the next group; 0: hvdrun ends in order, -1: the pipe has ended. */
static pid_t read_group(int fd)
{
    pid_t group;
    ssize_t bytes;

    do {
        bytes = read(fd, &group, sizeof(group));
    } while (bytes < 0 && errno == EINTR);
    return bytes == (ssize_t)sizeof(group) ? group : -1;
}

static void end_groups(const pid_t *groups, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        kill(-groups[i], SIGKILL);
    }
}

/* Collects groups until the pipe ends, and cleans up if hvdrun died. Never returns. */
static void watch_parent(int fd, const char *directory)
{
    pid_t *groups = NULL;
    size_t count = 0;
    pid_t group;

    while ((group = read_group(fd)) > 0) {
        pid_t *more = realloc(groups, (count + 1) * sizeof(*groups));

        if (more != NULL) {
            groups = more;
            groups[count++] = group;
        }
    }
    if (group < 0) {
        end_groups(groups, count);
        remove_directory(directory);
    }
    _exit(EXIT_SUCCESS);
}

/* Leaves hvdrun's process group and blocks signals. Closes the standard streams, because
 * otherwise a reader of hvdrun's output would also wait for the end of the watchdog. */
static void detach(void)
{
    sigset_t all;
    int nowhere = open("/dev/null", O_RDWR);

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_NAME, "hvdrun-watchdog");
    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
}

static int start_process(struct hvdrun_watchdog *watchdog, struct hvd_error *err)
{
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot open a pipe: %m");
    }
    pid = fork();
    if (pid == 0) {
        close(ends[1]);
        detach();
        watch_parent(ends[0], watchdog->directory);
    }
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        return hvd_fail(err, HVD_ERR_SYS, "cannot start a process: %m");
    }
    watchdog->pid = pid;
    watchdog->fd = ends[1];
    return 0;
}

int hvdrun_watchdog_start(struct hvdrun_watchdog *watchdog, struct hvd_error *err)
{
    int status = make_directory(watchdog->directory, sizeof(watchdog->directory), err);

    if (status == 0) {
        status = start_process(watchdog, err);
        if (status < 0) {
            remove_directory(watchdog->directory);
        }
    }
    return status;
}

void hvdrun_watchdog_add(const struct hvdrun_watchdog *watchdog, pid_t group)
{
    (void)!write(watchdog->fd, &group, sizeof(group));
}

void hvdrun_watchdog_stop(struct hvdrun_watchdog *watchdog)
{
    const pid_t in_order = 0;

    if (watchdog->pid <= 0) {
        return;
    }
    remove_directory(watchdog->directory);
    (void)!write(watchdog->fd, &in_order, sizeof(in_order));
    close(watchdog->fd);
    while (waitpid(watchdog->pid, NULL, 0) < 0 && errno == EINTR) {
    }
}
