/* SPDX-License-Identifier: Apache-2.0 */
/* Between fork and exec, the child makes only calls that are safe in a process with
 * several threads. */
#include "pmix_boot/hvdrun/start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_binding/binding.h"

/* Headers older than Linux 5.11 and glibc 2.34 lack these. */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

/* Exit codes of a shell for a command that it cannot run. */
enum {
    EXIT_CANNOT_RUN = 126,
    EXIT_NOT_FOUND = 127
};

/* Makes the kernel kill the rank when hvdrun dies. Fails if hvdrun died before prctl,
 * because the kernel then sends no signal. */
static int follow_parent(pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        return HVD_ERR_SYS;
    }
    errno = ESRCH;
    return getppid() == parent ? 0 : HVD_ERR_SYS;
}

static int take_streams(const struct hvdrun_start *start)
{
    return dup2(start->input, STDIN_FILENO) < 0 ||
                   dup2(start->output, STDOUT_FILENO) < 0 ||
                   dup2(start->error, STDERR_FILENO) < 0
               ? HVD_ERR_SYS
               : 0;
}

/* Closes all other descriptors of hvdrun at exec. Kernels before 5.11 cannot: there the
 * rank inherits those that are not close-on-exec. */
static void keep_descriptors(void)
{
    (void)syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
}

/* Restores the signal mask of hvdrun's caller, and SIGPIPE, which hvdrun ignores. */
static void restore_signals(const sigset_t *mask)
{
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
}

static void bind(const struct hvdrun_start *start)
{
    struct hvd_cpuset bound;

    /* Failures are ignored: without binding, the rank is only slower. */
    if (start->plan != NULL) {
        (void)hvd_apply_cpus(start->plan, start->rank, NULL, &bound, NULL);
        (void)hvd_apply_memory(start->plan, start->rank, NULL);
    }
}

/* Runs the command in the child. Returns only on failure, with errno. */
static void become(const struct hvdrun_start *start, pid_t parent)
{
    if (setpgid(0, 0) != 0 || follow_parent(parent) < 0 || take_streams(start) < 0) {
        return;
    }
    keep_descriptors();
    bind(start);
    restore_signals(start->signal_mask);
    execvpe(start->command[0], start->command, start->environment->items);
}

/* Waits until the child runs the command, which closes the pipe, or sends its errno.
 * Returns 0 or that errno. */
static int read_failure(int fd)
{
    int error = 0;
    ssize_t bytes;

    do {
        bytes = read(fd, &error, sizeof(error));
    } while (bytes < 0 && errno == EINTR);
    return bytes == (ssize_t)sizeof(error) ? error : 0;
}

static int fork_rank(const struct hvdrun_start *start, int *failure_fd, pid_t *pid,
                     struct hvd_error *err)
{
    pid_t parent = getpid();
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot open a pipe: %m");
    }
    *pid = fork();
    if (*pid == 0) {
        become(start, parent);
        (void)!write(ends[1], &errno, sizeof(errno));
        _exit(EXIT_NOT_FOUND);
    }
    close(ends[1]);
    if (*pid < 0) {
        close(ends[0]);
        return hvd_fail(err, HVD_ERR_SYS, "cannot start rank %d: %m", start->rank);
    }
    *failure_fd = ends[0];
    return 0;
}

/* --- Python scripts without "python" ------------------------------------------------ */

static bool is_python_script(const char *word)
{
    size_t length = strlen(word);

    return length > 3 && strcmp(word + length - 3, ".py") == 0 && access(word, R_OK) == 0;
}

/* Whether the kernel cannot run the script, because its first line names no interpreter.
 * execvpe would run it as a shell script. */
static bool lacks_interpreter(const char *path)
{
    char begin[2] = "#!";
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)!read(fd, begin, sizeof(begin));
        close(fd);
    }
    return memcmp(begin, "#!", sizeof(begin)) != 0;
}

static int fail_command(const char *word, int error, struct hvd_error *err)
{
    return is_python_script(word)
               ? hvd_fail(err, HVD_ERR_SYS,
                          "cannot run %s: %s; to run it with Python, write python3 %s",
                          word, strerror(error), word)
               : hvd_fail(err, HVD_ERR_SYS, "cannot run %s: %s", word, strerror(error));
}

int hvdrun_start(const struct hvdrun_start *start, pid_t *pid, int *exit_code,
                 struct hvd_error *err)
{
    const char *word = start->command[0];
    int failure_fd = -1;
    int error;
    int status;

    if (strchr(word, '/') != NULL && is_python_script(word) && lacks_interpreter(word)) {
        *exit_code = EXIT_CANNOT_RUN;
        return fail_command(word, ENOEXEC, err);
    }
    status = fork_rank(start, &failure_fd, pid, err);
    if (status < 0) {
        *exit_code = EXIT_CANNOT_RUN;
        return status;
    }
    error = read_failure(failure_fd);
    close(failure_fd);
    if (error == 0) {
        return 0;
    }
    waitpid(*pid, NULL, 0);
    *exit_code = error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
    return fail_command(word, error, err);
}
