/* SPDX-License-Identifier: Apache-2.0 */
/* How a rank of a Slurm step is killed. A script stands in for srun. */
#include "pmix_boot/rendezvous/slurm_kill.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_binding/base/log.h"
#include "pmix_boot/rendezvous/process_start.h"
#include "tests/tap.h"

/* Starts a process that is stopped, as a rank that hangs may be. Returns its pid, or
 * 0. */
static pid_t start_stopped(void)
{
    const pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        raise(SIGSTOP);
        _exit(0);
    }
    return pid > 0 && waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status) ? pid
                                                                                    : 0;
}

static int kill_here(pid_t pid, uint64_t started)
{
    char number[16], start[24];
    char *arguments[] = {number, start, NULL};

    snprintf(number, sizeof(number), "%d", (int)pid);
    snprintf(start, sizeof(start), "%" PRIu64, started);
    return hvd_rendezvous_slurm_kill_here(arguments);
}

static void test_on_node(void)
{
    const pid_t pid = start_stopped();
    const uint64_t started = hvd_rendezvous_process_start(pid);
    int status = 0;

    tap_ok(pid > 0 && started > 0, "a process has a start time");
    tap_ok(kill_here(pid, started + 1) == EXIT_FAILURE &&
               hvd_rendezvous_process_start(pid) == started &&
               waitpid(pid, &status, WNOHANG) == 0,
           "a later process with the rank's pid is left alone");
    tap_ok(kill_here(pid, started) == EXIT_SUCCESS && waitpid(pid, &status, 0) == pid &&
               WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
           "a rank that is stopped is killed");
    tap_ok(kill_here(pid, started) == EXIT_FAILURE,
           "a rank that is gone cannot be killed");
}

static bool write_srun(const char *dir, const char *body)
{
    char path[PATH_MAX];
    FILE *file;

    snprintf(path, sizeof(path), "%s/srun", dir);
    file = fopen(path, "w");
    if (file == NULL) {
        return false;
    }
    fprintf(file, "#!/bin/sh\n%s\n", body);
    return fclose(file) == 0 && chmod(path, 0700) == 0;
}

static bool file_has(const char *dir, const char *text)
{
    char path[PATH_MAX], content[4096];
    size_t bytes;
    FILE *file;

    snprintf(path, sizeof(path), "%s/said", dir);
    file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    bytes = fread(content, 1, sizeof(content) - 1, file);
    fclose(file);
    content[bytes] = '\0';
    return strstr(content, text) != NULL;
}

static void test_srun(const char *dir)
{
    char *arguments[] = {"1", "17", "n2", "4711", "99", NULL};

    setenv("PATH", dir, 1);
    tap_ok(hvd_rendezvous_slurm_kill_by_srun(arguments) == EXIT_FAILURE,
           "without srun no rank is killed");
    setenv("HOME", dir, 1);
    setenv("SLURM_STEP_ID", "3", 1);
    setenv("PMIX_RANK", "0", 1);
    tap_ok(write_srun(dir, "{ echo \"$*\"; /usr/bin/env; } >\"$HOME/said\"") &&
               hvd_rendezvous_slurm_kill_by_srun(arguments) == EXIT_SUCCESS,
           "srun is found in PATH");
    tap_ok(file_has(dir, "--jobid=17 ") && file_has(dir, "--nodelist=n2 ") &&
               file_has(dir, " kill 4711 99\n"),
           "srun starts a step in the rank's job, on the rank's node");
    tap_ok(!file_has(dir, "SLURM_STEP_ID") && !file_has(dir, "PMIX_RANK"),
           "the step inherits nothing from the step of the service");
    tap_ok(write_srun(dir, "exit 3") &&
               hvd_rendezvous_slurm_kill_by_srun(arguments) == EXIT_FAILURE,
           "a failure of srun is noticed");
}

static char logged[512];

static void keep_line(enum hvd_log_level level, const char *line)
{
    (void)level;
    snprintf(logged, sizeof(logged), "%s", line);
}

static void test_unknown(void)
{
    const struct hvd_rendezvous_process without_start = {.pid = 4711, .job = 17},
                                        without_job = {.pid = 4712, .started = 99};

    hvd_log_to(keep_line, HVD_LOG_WARN);
    hvd_rendezvous_slurm_kill_begin(&without_start, 3);
    tap_ok(strstr(logged, "rank 3 was not ended: it did not report its start") != NULL &&
               strstr(logged, "kill pid 4711 yourself") != NULL,
           "a rank that did not report enough is named: %s", logged);
    hvd_rendezvous_slurm_kill_begin(&without_job, 5);
    tap_ok(strstr(logged, "rank 5 was not ended: it did not report its Slurm job") !=
               NULL,
           "a rank outside Slurm is named");
}

int main(void)
{
    char dir[] = "/tmp/hvd-slurm-kill.XXXXXX";
    char path[PATH_MAX];

    test_on_node();
    if (mkdtemp(dir) == NULL) {
        tap_ok(false, "a directory");
        return tap_done();
    }
    test_srun(dir);
    test_unknown();
    snprintf(path, sizeof(path), "%s/said", dir);
    unlink(path);
    snprintf(path, sizeof(path), "%s/srun", dir);
    unlink(path);
    rmdir(dir);
    return tap_done();
}
