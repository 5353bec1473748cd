/* SPDX-License-Identifier: Apache-2.0 */
/* Starts hvd-rendezvous, which asks the service and prints one line with the answer: "at
 * ADDRESS PORT PORT" or "no REASON". */
#include "spank/service_question.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/inherited.h"

enum {
    LINE_BYTES = 512
};

/* Replaces the forked child by hvd-rendezvous, without the descriptors of slurmstepd,
 * which has some without close-on-exec, such as the port on which its PMIx server
 * listens. If that fails, the child prints the reason as an answer, "no REASON". */
static void become_program(const struct hvd_spank_service_question *question,
                           const char *host_port, int output)
{
    char variable[sizeof(HVD_ENV_RENDEZVOUS) + 640];
    char line[LINE_BYTES];
    char rank[16];
    char *const arguments[] = {(char *)question->program,
                               host_port[0] != '\0' ? "post" : "ask", rank,
                               host_port[0] != '\0' ? (char *)host_port : NULL, NULL};
    char *const environment[] = {variable, NULL};
    int length;

    snprintf(variable, sizeof(variable), HVD_ENV_RENDEZVOUS "=%s", question->service);
    snprintf(rank, sizeof(rank), "%d", question->rank);
    if (dup2(output, STDOUT_FILENO) == STDOUT_FILENO) {
        hvd_inherited_close();
        execve(question->program, arguments, environment);
    }
    length = snprintf(line, sizeof(line), "no cannot start %.300s: %s\n",
                      question->program, strerror(errno));
    (void)!write(STDOUT_FILENO, line, (size_t)length);
    _exit(EXIT_FAILURE);
}

/* Reads a line and removes its newline. */
static int read_line(int fd, int timeout_ms, char line[LINE_BYTES], struct hvd_error *err)
{
    const int64_t deadline_ms = hvd_clock_ms() + timeout_ms;
    size_t length = 0;

    while (length < LINE_BYTES - 1 && (length == 0 || line[length - 1] != '\n')) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        const int64_t left_ms = deadline_ms - hvd_clock_ms();
        ssize_t bytes;

        if (left_ms <= 0) {
            return hvd_fail(err, HVD_ERR_TIMEOUT,
                            "hvd-rendezvous did not answer within %d s",
                            timeout_ms / 1000);
        }
        if (poll(&wait, 1, (int)left_ms) <= 0) {
            continue;
        }
        bytes = read(fd, line + length, LINE_BYTES - 1 - length);
        if (bytes == 0) {
            return hvd_fail(err, HVD_ERR_SYS, "hvd-rendezvous ended without an answer");
        }
        if (bytes > 0) {
            length += (size_t)bytes;
        }
    }
    line[strcspn(line, "\n")] = '\0';
    return 0;
}

/* Starts hvd-rendezvous. Returns the descriptor from which to read its answer, or a
 * negative status. */
static int start_program(const struct hvd_spank_service_question *question,
                         const char *host_port, pid_t *pid, struct hvd_error *err)
{
    int ends[2];
    pid_t child;

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot open a pipe to hvd-rendezvous: %m");
    }
    child = fork();
    if (child == 0) {
        become_program(question, host_port, ends[1]);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return hvd_fail(err, HVD_ERR_SYS, "cannot start %.150s: %m", question->program);
    }
    *pid = child;
    return ends[0];
}

static int take_answer(const char *line, char host_port[HVD_SPANK_ADDRESS_BYTES],
                       struct hvd_error *err)
{
    const size_t bytes = strlen(line) + 1;

    if (strncmp(line, "at ", strlen("at ")) == 0 &&
        bytes - strlen("at ") <= HVD_SPANK_ADDRESS_BYTES) {
        memcpy(host_port, line + strlen("at "), bytes - strlen("at "));
        return 0;
    }
    if (strncmp(line, "no ", strlen("no ")) == 0) {
        return hvd_fail(err, HVD_ERR_NET, "%s", line + strlen("no "));
    }
    return hvd_fail(
        err, HVD_ERR_MISMATCH,
        "hvd-rendezvous answered '%.60s', which the plugin does not understand: install "
        "both from the same version of hvd",
        line);
}

int hvd_spank_service_question_ask(const struct hvd_spank_service_question *question,
                                   char host_port[HVD_SPANK_ADDRESS_BYTES],
                                   struct hvd_error *err)
{
    char line[LINE_BYTES];
    pid_t pid = 0;
    int ended = 0;
    int fd = start_program(question, host_port, &pid, err);
    int status;

    if (fd < 0) {
        return fd;
    }
    status = read_line(fd, question->timeout_ms, line, err);
    kill(pid, SIGKILL); /* the program is no longer needed */
    waitpid(pid, &ended, 0);
    close(fd);
    if (status == HVD_ERR_SYS && WIFSIGNALED(ended)) {
        return hvd_fail(err, HVD_ERR_SYS,
                        "hvd-rendezvous was ended by signal %d (%s); if Slurm is ending "
                        "the step, see its other messages for the reason",
                        WTERMSIG(ended), strsignal(WTERMSIG(ended)));
    }
    return status < 0 ? status : take_answer(line, host_port, err);
}
