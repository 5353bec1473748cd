/* SPDX-License-Identifier: Apache-2.0 */
/* The guard reads process groups from a pipe. A zero says that all is in order; the end of
 * the pipe without one says that hvdrun is gone. */
#include "pmix_boot/hvdrun/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pmix_boot/hvdrun/directory.h"

/* The next group; 0 for "all in order", -1 at the end of the pipe. */
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

/* Never returns. */
static void watch(int fd, const char *directory)
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
        hvdrun_directory_remove(directory);
    }
    _exit(EXIT_SUCCESS);
}

/* Signals for hvdrun's group, and the pipes that hvdrun's readers wait on, do not concern
 * the guard. */
static void detach(void)
{
    sigset_t all;
    int nowhere = open("/dev/null", O_RDWR);

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_NAME, "hvdrun-guard");
    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
}

int hvdrun_guard_start(struct hvdrun_guard *guard, const char *directory,
                       struct hvd_error *err)
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
        watch(ends[0], directory);
    }
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        return hvd_fail(err, HVD_ERR_SYS, "cannot start a process: %m");
    }
    *guard = (struct hvdrun_guard){pid, ends[1]};
    return 0;
}

void hvdrun_guard_watch(const struct hvdrun_guard *guard, pid_t group)
{
    (void)!write(guard->fd, &group, sizeof(group));
}

void hvdrun_guard_stop(struct hvdrun_guard *guard)
{
    const pid_t in_order = 0;

    (void)!write(guard->fd, &in_order, sizeof(in_order));
    close(guard->fd);
    while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR) {
    }
}
