/* SPDX-License-Identifier: Apache-2.0 */
/* A conversation over two pipes. */
#include "contrib/bench/hvd_bench/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_binding/base/hvd_status.h"

static int spawn(pid_t *pid, const int to[2], const int from[2], char *const *argv,
                 char *const *environment)
{
    posix_spawn_file_actions_t actions;
    int failed = posix_spawn_file_actions_init(&actions);

    if (failed != 0) {
        return failed;
    }
    posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
    failed = posix_spawnp(pid, argv[0], &actions, NULL, argv, environment);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

int bench_child_start(struct bench_child *child, const char *name, char *const *argv,
                      char *const *environment, struct hvd_error *err)
{
    int to[2], from[2], failed;

    *child = (struct bench_child){.name = name};
    if (pipe2(to, O_CLOEXEC) != 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot create a pipe: %m");
    }
    if (pipe2(from, O_CLOEXEC) != 0) {
        close(to[0]);
        close(to[1]);
        return hvd_fail(err, HVD_ERR_SYS, "cannot create a pipe: %m");
    }
    failed = spawn(&child->pid, to, from, argv, environment);
    close(to[0]);
    close(from[1]);
    child->to = fdopen(to[1], "w");
    child->from = fdopen(from[0], "r");
    if (failed != 0 || child->to == NULL || child->from == NULL) {
        bench_child_stop(child);
        errno = failed;
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "cannot start %s: %m", argv[0]);
    }
    return 0;
}

/* A child that has ended must not end us. */
static int say(FILE *to, const char *question)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    int failed;

    sigaction(SIGPIPE, &ignore, &before);
    failed = fprintf(to, "%s\n", question) < 0 || fflush(to) != 0;
    sigaction(SIGPIPE, &before, NULL);
    return failed ? HVD_ERR_PEER : 0;
}

int bench_child_ask(struct bench_child *child, const char *question, char *answer,
                    size_t room, struct hvd_error *err)
{
    if (say(child->to, question) < 0 || fgets(answer, (int)room, child->from) == NULL) {
        return hvd_fail(err, HVD_ERR_PEER, "%s: its process ended at \"%.40s\"",
                        child->name, question);
    }
    answer[strcspn(answer, "\n")] = '\0';
    if (strncmp(answer, "no ", 3) == 0) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "%s", answer + 3);
    }
    if (strncmp(answer, "wrong ", 6) == 0) {
        return hvd_fail(err, HVD_ERR_MISMATCH, "%s: wrong result: %s", child->name,
                        answer + 6);
    }
    return 0;
}

void bench_child_stop(struct bench_child *child)
{
    if (child->to != NULL) {
        fclose(child->to);
    }
    if (child->from != NULL) {
        fclose(child->from);
    }
    if (child->pid > 0) {
        while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    *child = (struct bench_child){0};
}
