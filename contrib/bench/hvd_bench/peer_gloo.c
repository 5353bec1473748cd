/* SPDX-License-Identifier: Apache-2.0 */
/* The peer "gloo": Gloo through torch.distributed, in one child process for each rank.
 * The children have their own buffers and check their own results. Requests and answers
 * are lines:
 *
 *   hvd-bench sends                        the child answers
 *   load                                   ok                torch is there
 *   serve                                  at HOST PORT      (rank 0 only)
 *   join HOST PORT                         ok                it has joined the others
 *   work COLLECTIVE DTYPE OP COUNT         ok                COUNT: elements of the input
 *   check                                  ok
 *   run CALLS                              SECONDS
 *
 * A child that cannot do its work answers "no REASON", or "wrong REASON" if a result is
 * wrong. It answers when all its work is done, so that children and their parents never
 * run at the same time. A child ends when its input is closed. */
#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contrib/bench/hvd_bench/contender.h"
#include "contrib/bench/hvd_bench/options.h"
#include "contrib/bench/hvd_bench/scripts.h"

extern char **environ;

struct answer {
    char text[256];
};

struct peer {
    pid_t pid;
    FILE *talk;
    struct answer answer; /* the child's last answer */
};

/* Starts argv[0] with a socket as its standard input and output. Returns
 * HVD_ERR_UNSUPPORTED if that fails. */
static int start_child(struct peer *peer, char *const *argv, struct hvd_error *err)
{
    posix_spawn_file_actions_t actions;
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot create a socket: %m");
    }
    peer->talk = fdopen(ends[0], "r");
    errno = posix_spawn_file_actions_init(&actions);
    if (errno == 0) {
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        errno = posix_spawnp(&peer->pid, argv[0], &actions, NULL, argv, environ);
        peer->pid = errno == 0 ? peer->pid : 0;
        posix_spawn_file_actions_destroy(&actions);
    }
    close(ends[1]);
    if (peer->talk == NULL) {
        close(ends[0]); /* a child that was started ends with its input */
    }
    return peer->pid > 0 && peer->talk != NULL
               ? 0
               : hvd_fail(err, HVD_ERR_UNSUPPORTED, "cannot start %s: %m", argv[0]);
}

/* Sends a line and waits for the answer. Returns HVD_ERR_UNSUPPORTED for "no",
 * HVD_ERR_MISMATCH for "wrong", HVD_ERR_PEER if the child has ended. */
static int ask(struct peer *peer, const char *question, struct hvd_error *err)
{
    char line[512], *answer = peer->answer.text;
    int length = snprintf(line, sizeof(line), "%s\n", question);

    if (send(fileno(peer->talk), line, (size_t)length, MSG_NOSIGNAL) != length ||
        fgets(answer, sizeof(peer->answer.text), peer->talk) == NULL) {
        return hvd_fail(err, HVD_ERR_PEER, "gloo: its process ended at \"%.40s\"",
                        question);
    }
    answer[strcspn(answer, "\n")] = '\0';
    if (strncmp(answer, "no ", 3) == 0) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "%s", answer + 3);
    }
    if (strncmp(answer, "wrong ", 6) == 0) {
        return hvd_fail(err, HVD_ERR_MISMATCH, "gloo: wrong result: %s", answer + 6);
    }
    return 0;
}

static int start(struct peer *peer, const struct bench_job *job, const char *python,
                 struct hvd_error *err)
{
    char path[PATH_MAX], numbers[3][16];
    char *argv[] = {(char *)python, path, numbers[0], numbers[1], numbers[2], NULL};
    int status = bench_script_find("peer_gloo.py", path, sizeof(path), err);

    snprintf(numbers[0], sizeof(numbers[0]), "%d", job->rank);
    snprintf(numbers[1], sizeof(numbers[1]), "%d", job->size);
    snprintf(numbers[2], sizeof(numbers[2]), "%d", job->layout.nodes);
    if (status == 0) {
        status = start_child(peer, argv, err);
    }
    return status < 0 ? status : ask(peer, "load", err);
}

/* Connects the children: that of rank 0 opens a port, and the others connect to it. */
static int meet(struct peer *peer, const struct bench_job *job, const char *python,
                struct hvd_error *err)
{
    struct answer *all = calloc((size_t)job->size, sizeof(all[0]));
    char question[sizeof(all[0].text) + 8];
    int status = all != NULL ? start(peer, job, python, err)
                             : hvd_fail(err, HVD_ERR_NOMEM, "out of memory");

    if (status == 0 && job->rank == 0) {
        status = ask(peer, "serve", err);
        if (status == 0 && strncmp(peer->answer.text, "at ", 3) != 0) {
            status = hvd_fail(err, HVD_ERR_UNSUPPORTED, "unexpected answer \"%.80s\"",
                              peer->answer.text);
        }
    }
    status = bench_job_agree(status, err);
    if (status == 0) {
        status = bench_job_gather(&peer->answer, sizeof(peer->answer), all, err);
    }
    if (status == 0) {
        snprintf(question, sizeof(question), "join %s", all[0].text + 3);
        status = bench_job_agree(ask(peer, question, err), err);
    }
    free(all);
    return status;
}

static int prepare(void *self, struct bench_work *work, struct hvd_error *err)
{
    char question[128];

    if (bench_collective_is_of_pairs(work->collective)) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "messages are compared with mpi only");
    }
    snprintf(question, sizeof(question), "work %s %s %s %lld",
             bench_collective_name(work->collective), hvd_dtype_name(work->dtype),
             bench_op_name(work->op), (long long)work->input_count);
    return ask(self, question, err);
}

static int run(void *self, int calls, double *seconds, struct hvd_error *err)
{
    struct peer *peer = self;
    char question[64];
    int status;

    snprintf(question, sizeof(question), "run %d", calls);
    status = ask(peer, question, err);
    if (status == 0) {
        *seconds = strtod(peer->answer.text, NULL);
    }
    return status;
}

static int check(void *self, struct hvd_error *err)
{
    return ask(self, "check", err);
}

static void destroy(void *self)
{
    struct peer *peer = self;

    if (peer->talk != NULL) {
        fclose(peer->talk);
    }
    while (peer->pid > 0 && waitpid(peer->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    free(peer);
}

static const struct bench_contender_ops ops = {
    .prepare = prepare,
    .run = run,
    .check = check,
    .destroy = destroy,
};

int bench_gloo_create(const struct bench_job *job, const char *program,
                      struct bench_contender *out, struct hvd_error *err)
{
    int status = bench_contender_create("gloo", &ops, sizeof(struct peer), out, err);

    if (status < 0) {
        return status;
    }
    status = meet(out->self, job, program != NULL ? program : "/usr/bin/python3", err);
    if (status < 0) {
        destroy(out->self);
    }
    return status;
}
