/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program, or a function, in a child process with a time limit. */
#include "contrib/info/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_binding/base/clock.h"

enum {
    DEFAULT_BYTES = 1 << 20,
    KILL_MS = 1000,
    STATUS_MISSING = 127, /* as a shell reports it */
};

/* --- in the child --- */

static int run_program(const struct hvd_info_process *process)
{
    execvp(process->argv[0], (char *const *)process->argv);
    if (errno == ENOENT) {
        return STATUS_MISSING;
    }
    fprintf(stderr, "cannot run %s: %m\n", process->argv[0]);
    return EXIT_FAILURE;
}

static int call_function(const struct hvd_info_process *process)
{
    struct hvd_error err = {0};
    int status = process->function(&err);

    fflush(stdout);
    if (status < 0) {
        fprintf(stderr, "%s\n", err.text);
    }
    return status < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The child leads a process group, so that the time limit also ends its own children. It
 * ends when hvd-info does. */
static void become_child(const struct hvd_info_process *process, int output)
{
    int input = open("/dev/null", O_RDONLY);

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (input >= 0) {
        dup2(input, STDIN_FILENO);
    }
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    if (process->environment != NULL) {
        environ = process->environment;
    }
    _exit(process->argv != NULL ? run_program(process) : call_function(process));
}

/* --- in the parent --- */

/* Reads to the end of the output, or sets is_late at the time limit. Goes on reading when
 * the buffer is full, because the child must not block. */
static int read_output(int from, size_t most_bytes, int64_t deadline_ms,
                       struct hvd_info_output *output)
{
    char spare[4096];

    for (;;) {
        struct pollfd ready = {.fd = from, .events = POLLIN};
        int64_t left_ms = deadline_ms - hvd_clock_ms();

        if (left_ms <= 0 || poll(&ready, 1, (int)left_ms) == 0) {
            output->is_late = true;
            return 0;
        }
        size_t room = most_bytes - output->bytes;
        ssize_t got = room > 0 ? read(from, output->text + output->bytes, room)
                               : read(from, spare, sizeof(spare));
        if (got == 0) {
            return 0;
        }
        if (got < 0 && errno != EINTR) {
            return HVD_ERR_SYS;
        }
        if (got > 0) {
            output->is_cut = room == 0;
            output->bytes += room > 0 ? (size_t)got : 0;
        }
    }
}

/* Waits for the end of the child until the deadline. */
static bool has_ended(pid_t pid, int64_t deadline_ms, int *status)
{
    while (waitpid(pid, status, WNOHANG) != pid) {
        if (hvd_clock_ms() >= deadline_ms) {
            return false;
        }
        poll(NULL, 0, 1);
    }
    return true;
}

/* Waits for the end of the child, which may come long after the end of its output, and
 * kills the child at the deadline. The kernel cannot kill a child that waits for a dead
 * file system: it is left behind. Returns the child's status as waitpid does. */
static int await_end(pid_t pid, int64_t deadline_ms, struct hvd_info_output *output)
{
    int status = 0;

    if (!output->is_late && has_ended(pid, deadline_ms, &status)) {
        return status;
    }
    output->is_late = true;
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL); /* in case it does not lead its group yet */
    return has_ended(pid, hvd_clock_ms() + KILL_MS, &status) ? status : SIGKILL;
}

int hvd_info_process_run(const struct hvd_info_process *process,
                         struct hvd_info_output *output, struct hvd_error *err)
{
    int64_t deadline_ms = hvd_clock_ms() + process->limit_ms;
    const size_t most_bytes =
        process->most_bytes > 0 ? process->most_bytes : DEFAULT_BYTES;
    struct hvd_info_output found = {.text = malloc(most_bytes + 1)};
    int ends[2];
    int status = 0;

    if (found.text == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the output of a program");
    }
    if (pipe2(ends, O_CLOEXEC) < 0) {
        free(found.text);
        return hvd_fail(err, HVD_ERR_SYS, "cannot make a pipe: %m");
    }
    fflush(NULL); /* or the child would print this text once more */
    pid_t pid = fork();
    if (pid == 0) {
        become_child(process, ends[1]);
    }
    close(ends[1]);
    if (pid > 0) {
        status = read_output(ends[0], most_bytes, deadline_ms, &found);
        int ended = await_end(pid, deadline_ms, &found);
        found.exit_status = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
    }
    close(ends[0]);
    if (pid < 0 || status < 0) {
        free(found.text);
        return hvd_fail(err, HVD_ERR_SYS, "cannot run a child process: %m");
    }
    found.is_missing = process->argv != NULL && found.exit_status == STATUS_MISSING;
    found.text[found.bytes] = '\0';
    *output = found;
    return 0;
}

bool hvd_info_output_is_good(const struct hvd_info_output *output)
{
    return !output->is_late && output->exit_status == EXIT_SUCCESS;
}

void hvd_info_output_finish(struct hvd_info_output *output)
{
    free(output->text);
    output->text = NULL;
}
