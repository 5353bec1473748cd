/* SPDX-License-Identifier: Apache-2.0 */
/* The peers that run in Python, Gloo and Horovod, in one child process for each rank. They have
 * their own buffers and check their own results. A child is spoken to in lines over two pipes:
 *
 *   hvd-bench says                          the child answers
 *   load                                    ok                     its library is there
 *   serve LAYOUT                            at PORT                (of rank 0 only)
 *   join HOST PORT RANK SIZE ...            ok                     it has joined the others
 *   work COLLECTIVE DTYPE OP COUNT          ok                     COUNT: elements of the input
 *   check                                   ok
 *   run CALLS                               SECONDS
 *
 * join also says local rank and size, cross rank and size; LAYOUT is "2,2". A child that cannot do
 * that answers "no REASON", and "wrong REASON" when a result is wrong. Answers come when all is
 * done, so that children and their parents never run at the same time. A child ends when its input
 * does. */
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contrib/bench/hvd_bench/contender.h"
#include "contrib/bench/hvd_bench/explain.h"
#include "contrib/bench/hvd_bench/options.h"
#include "contrib/bench/hvd_bench/scripts.h"

extern char **environ;

enum {
    ADDRESS_ROOM = 64,
    ANSWER_ROOM = 256,
    MOST_SETTINGS = 4096
};

struct peer {
    const char *name; /* as in --vs */
    pid_t pid;
    FILE *to, *from; /* the conversation */
    char answer[ANSWER_ROOM]; /* the last one */
};

/* Where the first rank's child is to be found, and by which interface. */
struct meeting {
    char host[ADDRESS_ROOM];
    char interface[IF_NAMESIZE];
    int port;
};

/* --- conversation ---------------------------------------------------------------------- */

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

/* Starts argv[0] with its standard input and output as the conversation. HVD_ERR_UNSUPPORTED if it
 * cannot be started. */
static int start_child(struct peer *peer, char *const *argv, char *const *environment,
                       struct hvd_error *err)
{
    int to[2], from[2], failed;

    if (pipe2(to, O_CLOEXEC) != 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot create a pipe: %m");
    }
    if (pipe2(from, O_CLOEXEC) != 0) {
        close(to[0]);
        close(to[1]);
        return hvd_fail(err, HVD_ERR_SYS, "cannot create a pipe: %m");
    }
    failed = spawn(&peer->pid, to, from, argv, environment);
    close(to[0]);
    close(from[1]);
    peer->to = fdopen(to[1], "w");
    peer->from = fdopen(from[0], "r");
    if (failed != 0 || peer->to == NULL || peer->from == NULL) {
        peer->pid = failed != 0 ? 0 : peer->pid;
        errno = failed;
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "cannot start %s: %m", argv[0]);
    }
    return 0;
}

/* Says one line. Ignores SIGPIPE meanwhile: a child that has ended must not end this process. */
static int say(FILE *to, const char *question)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    int failed;

    sigaction(SIGPIPE, &ignore, &before);
    failed = fprintf(to, "%s\n", question) < 0 || fflush(to) != 0;
    sigaction(SIGPIPE, &before, NULL);
    return failed ? HVD_ERR_PEER : 0;
}

/* Asks, and waits for the answer. HVD_ERR_UNSUPPORTED for "no", HVD_ERR_MISMATCH for "wrong",
 * HVD_ERR_PEER when the child has ended. */
static int ask(struct peer *peer, const char *question, struct hvd_error *err)
{
    if (say(peer->to, question) < 0 ||
        fgets(peer->answer, sizeof(peer->answer), peer->from) == NULL) {
        return hvd_fail(err, HVD_ERR_PEER, "%s: its process ended at \"%.40s\"",
                        peer->name, question);
    }
    peer->answer[strcspn(peer->answer, "\n")] = '\0';
    if (strncmp(peer->answer, "no ", 3) == 0) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "%s", peer->answer + 3);
    }
    if (strncmp(peer->answer, "wrong ", 6) == 0) {
        return hvd_fail(err, HVD_ERR_MISMATCH, "%s: wrong result: %s", peer->name,
                        peer->answer + 6);
    }
    return 0;
}

/* --- start ----------------------------------------------------------------------------- */

/* The first address that others may reach: the loopback one where all ranks are here. */
static void find_address(const struct bench_job *job, struct meeting *meeting)
{
    struct ifaddrs *all = NULL;

    snprintf(meeting->host, sizeof(meeting->host), "127.0.0.1");
    snprintf(meeting->interface, sizeof(meeting->interface), "lo");
    if (job->layout.nodes == 1 || getifaddrs(&all) != 0) {
        return;
    }
    for (const struct ifaddrs *one = all; one != NULL; one = one->ifa_next) {
        bool is_up = (one->ifa_flags & IFF_UP) != 0;

        if (one->ifa_addr != NULL && one->ifa_addr->sa_family == AF_INET && is_up &&
            (one->ifa_flags & IFF_LOOPBACK) == 0) {
            getnameinfo(one->ifa_addr, sizeof(struct sockaddr_in), meeting->host,
                        sizeof(meeting->host), NULL, 0, NI_NUMERICHOST);
            snprintf(meeting->interface, sizeof(meeting->interface), "%s", one->ifa_name);
            break;
        }
    }
    freeifaddrs(all);
}

/* Whether a variable would make the child take part in this job, or load our package for the
 * peer's. */
static bool is_foreign(const char *setting)
{
    static const char *const prefixes[] = {"PYTHONPATH=", "PMIX_",  "HVD_", "OMPI_",
                                           "HOROVOD_",    "SLURM_", "PMI_", "PYENV_"};

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (strncmp(setting, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* The variables of this process without those of its job, and with those of Gloo. The caller frees
 * the array; the texts are borrowed, one of them from gloo_interface. */
static char **make_environment(char *gloo_interface)
{
    char **environment = calloc(MOST_SETTINGS + 3, sizeof(char *));
    int count = 0;

    if (environment == NULL) {
        return NULL;
    }
    for (int i = 0; environ[i] != NULL && count < MOST_SETTINGS; i++) {
        if (!is_foreign(environ[i])) {
            environment[count++] = environ[i];
        }
    }
    if (getenv("GLOO_SOCKET_IFNAME") == NULL) {
        environment[count++] = gloo_interface;
    }
    if (getenv("OMP_NUM_THREADS") == NULL) {
        environment[count++] = (char *)"OMP_NUM_THREADS=1";
    }
    return environment;
}

static int start(struct peer *peer, const char *script, const char *python,
                 const struct meeting *mine, struct hvd_error *err)
{
    char path[PATH_MAX], gloo_interface[64];
    char *argv[] = {(char *)python, path, NULL};
    char **environment;
    int status = bench_script_find(script, path, sizeof(path), err);

    if (status < 0) {
        return status;
    }
    snprintf(gloo_interface, sizeof(gloo_interface), "GLOO_SOCKET_IFNAME=%s",
             mine->interface);
    environment = make_environment(gloo_interface);
    if (environment == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    status = start_child(peer, argv, environment, err);
    free(environment);
    return status < 0 ? status : ask(peer, "load", err);
}

/* The first rank's child opens a port for the others. */
static int serve(struct peer *peer, const struct bench_job *job, struct meeting *meeting,
                 struct hvd_error *err)
{
    char question[1100], layout[1024];
    int status;

    snprintf(question, sizeof(question), "serve %s",
             bench_layout_write(&job->layout, layout, sizeof(layout)));
    status = ask(peer, question, err);
    if (status == 0 && sscanf(peer->answer, "at %d", &meeting->port) != 1) {
        status = hvd_fail(err, HVD_ERR_UNSUPPORTED, "unexpected answer \"%.80s\"",
                          peer->answer);
    }
    return status;
}

static int join(struct peer *peer, const struct bench_job *job,
                const struct meeting *first, struct hvd_error *err)
{
    char question[256];

    snprintf(question, sizeof(question), "join %s %d %d %d %d %d %d %d", first->host,
             first->port, job->rank, job->size, job->local_rank, job->local_size,
             hvd_layout_cross_rank(&job->layout, job->rank),
             hvd_layout_cross_size(&job->layout, job->rank));
    return ask(peer, question, err);
}

static int meet(struct peer *peer, const struct bench_job *job, const char *script,
                const char *python, struct hvd_error *err)
{
    struct meeting mine = {0}, *all = calloc((size_t)job->size, sizeof(all[0]));
    int status = all != NULL ? 0 : hvd_fail(err, HVD_ERR_NOMEM, "out of memory");

    if (status == 0) {
        find_address(job, &mine);
        status = start(peer, script, python, &mine, err);
    }
    if (status == 0 && job->rank == 0) {
        status = serve(peer, job, &mine, err);
    }
    status = bench_job_agree(status, err);
    if (status == 0) {
        status = bench_job_gather(&mine, sizeof(mine), all, err);
    }
    if (status == 0) {
        status = bench_job_agree(join(peer, job, &all[0], err), err);
    }
    free(all);
    return status;
}

/* --- contender ------------------------------------------------------------------------- */

static int prepare(void *self, struct bench_work *work, struct hvd_error *err)
{
    char question[128];

    if (bench_collective_is_of_pairs(work->collective)) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "messages: only mpi");
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
        *seconds = strtod(peer->answer, NULL);
    }
    return status;
}

static int check(void *self, struct hvd_error *err)
{
    return ask(self, "check", err);
}

static void finish(void *self)
{
    (void)self;
}

static void destroy(void *self)
{
    struct peer *peer = self;

    if (peer->to != NULL) {
        fclose(peer->to);
    }
    if (peer->from != NULL) {
        fclose(peer->from);
    }
    if (peer->pid > 0) {
        while (waitpid(peer->pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    free(peer);
}

static const struct bench_contender_ops ops = {
    .prepare = prepare,
    .run = run,
    .check = check,
    .finish = finish,
    .destroy = destroy,
};

static int create(const char *name, const char *script, const struct bench_job *job,
                  const char *python, struct bench_contender *out, struct hvd_error *err)
{
    struct peer *peer = calloc(1, sizeof(*peer));
    int status;

    if (peer == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    peer->name = name;
    status = meet(peer, job, script, python, err);
    if (status < 0) {
        destroy(peer);
        return status;
    }
    *out = (struct bench_contender){.name = name, .ops = &ops, .self = peer};
    return 0;
}

int bench_gloo_create(const struct bench_job *job, const char *program,
                      struct bench_contender *out, struct hvd_error *err)
{
    return create("gloo", "peer_torch.py", job,
                  program != NULL ? program : "/usr/bin/python3", out, err);
}

int bench_horovod_create(const struct bench_job *job, const char *program,
                         struct bench_contender *out, struct hvd_error *err)
{
    if (program == NULL) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "say which Python has it: horovod=PYTHON; "
                        "contrib/bench/horovod_env.sh makes one");
    }
    return create("horovod", "peer_horovod.py", job, program, out, err);
}
