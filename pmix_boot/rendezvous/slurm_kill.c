/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/rendezvous/slurm_kill.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/log.h"
#include "gpu_binding/base/srun_environment.h"
#include "pmix_boot/rendezvous/process_start.h"

enum {
    /* time limit of srun, which otherwise waits for a node that does not answer */
    LIMIT_S = 60
};

/* --- in the service --- */

static const char *program_path(char path[PATH_MAX])
{
    const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);

    path[length > 0 ? length : 0] = '\0';
    return path;
}

/* Starts the program with default signals, which the service ignores, and without the
 * pipes to the launcher. */
static int spawn_program(const char *program, char *const *arguments,
                         char *const *environment, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t all, none;
    int error;

    sigfillset(&all);
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    error = posix_spawnp(pid, program, &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

void hvd_rendezvous_slurm_kill_begin(const struct hvd_rendezvous_process *process,
                                     int rank)
{
    char path[PATH_MAX], number[16], job[16], pid[16], started[24];
    char *const arguments[] = {(char *)program_path(path),
                               "kill-by-srun",
                               number,
                               job,
                               (char *)process->node,
                               pid,
                               started,
                               NULL};
    pid_t child;
    int error;

    if (process->job == 0 || process->started == 0) {
        hvd_log(HVD_LOG_WARN,
                "elastic: rank %d was not ended: it did not report its %s; kill pid %d "
                "yourself, or srun waits for it at the end",
                rank, process->job == 0 ? "Slurm job" : "start, from /proc",
                (int)process->pid);
        return;
    }
    snprintf(number, sizeof(number), "%d", rank);
    snprintf(job, sizeof(job), "%" PRIu32, process->job);
    snprintf(pid, sizeof(pid), "%d", (int)process->pid);
    snprintf(started, sizeof(started), "%" PRIu64, process->started);
    error = spawn_program(path, arguments, environ, &child);
    if (error != 0) {
        hvd_log(HVD_LOG_WARN, "elastic: cannot start %s: %s; kill pid %d on %s yourself",
                path, strerror(error), (int)process->pid, process->node);
    }
}

/* --- in the process beside the service --- */

static int start_srun(const char *job, const char *node, char *pid, char *started,
                      pid_t *srun)
{
    char path[PATH_MAX], jobid[32], nodelist[320];
    struct hvd_srun_environment environment;
    char *const arguments[] = {"srun",
                               jobid,
                               "--overlap",
                               "--nodes=1",
                               "--ntasks=1",
                               nodelist,
                               "--mem=0",
                               "--gres=none",
                               "--mpi=none",
                               "--input=none",
                               "--hvd=off",
                               "--job-name=hvd-kill",
                               (char *)program_path(path),
                               "kill",
                               pid,
                               started,
                               NULL};

    snprintf(jobid, sizeof(jobid), "--jobid=%s", job);
    snprintf(nodelist, sizeof(nodelist), "--nodelist=%s", node);
    hvd_srun_environment_fill(&environment);
    return spawn_program("srun", arguments, environment.variables, srun);
}

/* Waits for srun with SIGCHLD blocked. Returns the wait status, or -1 after the time
 * limit. */
static int await_srun(pid_t srun)
{
    const int64_t deadline_ms = hvd_clock_ms() + INT64_C(1000) * LIMIT_S;
    sigset_t child;
    int64_t left_ms;
    int status;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    while (waitpid(srun, &status, WNOHANG) != srun) {
        left_ms = deadline_ms - hvd_clock_ms();
        if (left_ms <= 0) {
            kill(srun, SIGKILL);
            waitpid(srun, NULL, 0);
            return -1;
        }
        sigtimedwait(&child, NULL,
                     &(struct timespec){left_ms / 1000, left_ms % 1000 * 1000000});
    }
    return status;
}

static int fail_kill(char **arguments, const char *reason)
{
    hvd_log(HVD_LOG_WARN,
            "elastic: rank %s was not ended: %s; kill pid %s on %s yourself, or srun "
            "waits for it at the end",
            arguments[0], reason, arguments[3], arguments[2]);
    return EXIT_FAILURE;
}

int hvd_rendezvous_slurm_kill_by_srun(char **arguments)
{
    char reason[128];
    sigset_t child;
    pid_t srun;
    int status;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    status = start_srun(arguments[1], arguments[2], arguments[3], arguments[4], &srun);
    if (status != 0) {
        snprintf(reason, sizeof(reason), "cannot start srun: %s", strerror(status));
        return fail_kill(arguments, reason);
    }
    status = await_srun(srun);
    if (status == -1) {
        snprintf(reason, sizeof(reason),
                 "the srun that kills it has not ended within %d s", LIMIT_S);
        return fail_kill(arguments, reason);
    }
    if (status != 0) {
        return fail_kill(arguments, "the srun that kills it has failed");
    }
    hvd_log(HVD_LOG_WARN, "elastic: rank %s on %s (pid %s) was ended", arguments[0],
            arguments[2], arguments[3]);
    return EXIT_SUCCESS;
}

/* --- on the rank's node --- */

int hvd_rendezvous_slurm_kill_here(char **arguments)
{
    const pid_t pid = (pid_t)strtol(arguments[0], NULL, 10);
    const uint64_t started = strtoull(arguments[1], NULL, 10);

    if (pid <= 1 || hvd_rendezvous_process_start(pid) != started) {
        hvd_log(HVD_LOG_WARN,
                "elastic: pid %d is not the rank any more, or the rank is in a "
                "container with its own pids",
                (int)pid);
        return EXIT_FAILURE;
    }
    if (kill(pid, SIGKILL) != 0) {
        hvd_log(HVD_LOG_WARN, "elastic: cannot kill pid %d: %m", (int)pid);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
