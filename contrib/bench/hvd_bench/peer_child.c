/* SPDX-License-Identifier: Apache-2.0 */
/* The peers that run in Python, in one child process for each rank (child.h): Gloo and Horovod.
 * They have their own buffers and check their own results. */
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "contrib/bench/hvd_bench/child.h"
#include "contrib/bench/hvd_bench/contender.h"
#include "contrib/bench/hvd_bench/explain.h"
#include "contrib/bench/hvd_bench/options.h"
#include "contrib/bench/hvd_bench/scripts.h"

extern char **environ;

enum {
    ADDRESS_ROOM = 64,
    MOST_SETTINGS = 4096
};

struct recipe {
    const char *name; /* as in --vs */
    const char *script;
};

struct peer {
    struct bench_child child;
};

/* Where the first rank's child is to be found, and by which way. */
struct meeting {
    char host[ADDRESS_ROOM];
    char interface[IF_NAMESIZE];
    int port;
};

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

/* What would make the child take part in our job, or load our package for the peer's. */
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

/* The variables of this process, less those of its job, plus what the child needs. The array is
 * the caller's; the texts are borrowed, one of them from gloo_interface. */
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

static int start(struct peer *peer, const struct recipe *recipe, const char *python,
                 const struct meeting *mine, struct hvd_error *err)
{
    char path[PATH_MAX], answer[256], gloo_interface[64];
    char *argv[] = {(char *)python, path, NULL};
    char **environment;
    int status = bench_script_find(recipe->script, path, sizeof(path), err);

    if (status < 0) {
        return status;
    }
    snprintf(gloo_interface, sizeof(gloo_interface), "GLOO_SOCKET_IFNAME=%s",
             mine->interface);
    environment = make_environment(gloo_interface);
    if (environment == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    status = bench_child_start(&peer->child, recipe->name, argv, environment, err);
    free(environment);
    if (status < 0) {
        return status;
    }
    return bench_child_ask(&peer->child, "load", answer, sizeof(answer), err);
}

/* The first rank's child opens a port for the others. */
static int serve(struct peer *peer, const struct bench_job *job, struct meeting *meeting,
                 struct hvd_error *err)
{
    char question[1100], layout[1024], answer[256];
    int status;

    snprintf(question, sizeof(question), "serve %s",
             bench_layout_write(&job->layout, layout, sizeof(layout)));
    status = bench_child_ask(&peer->child, question, answer, sizeof(answer), err);
    if (status == 0 && sscanf(answer, "at %d", &meeting->port) != 1) {
        status =
            hvd_fail(err, HVD_ERR_UNSUPPORTED, "unexpected answer \"%.80s\"", answer);
    }
    return status;
}

static int join(struct peer *peer, const struct bench_job *job,
                const struct meeting *first, struct hvd_error *err)
{
    char question[256], answer[256];

    snprintf(question, sizeof(question), "join %s %d %d %d %d %d %d %d", first->host,
             first->port, job->rank, job->size, job->local_rank, job->local_size,
             hvd_layout_cross_rank(&job->layout, job->rank),
             hvd_layout_cross_size(&job->layout, job->rank));
    return bench_child_ask(&peer->child, question, answer, sizeof(answer), err);
}

static int meet(struct peer *peer, const struct bench_job *job,
                const struct recipe *recipe, const char *python, struct hvd_error *err)
{
    struct meeting mine = {0}, *all = calloc((size_t)job->size, sizeof(all[0]));
    int status = all != NULL ? 0 : hvd_fail(err, HVD_ERR_NOMEM, "out of memory");

    find_address(job, &mine);
    status = status < 0 ? status : start(peer, recipe, python, &mine, err);
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

static int prepare(void *self, struct bench_work *work, struct hvd_error *err)
{
    struct peer *peer = self;
    char question[128], answer[256];

    if (bench_collective_is_of_pairs(work->collective)) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "messages: only mpi");
    }
    snprintf(question, sizeof(question), "work %s %s %s %lld",
             bench_collective_name(work->collective), hvd_dtype_name(work->dtype),
             bench_op_name(work->op), (long long)work->input_count);
    return bench_child_ask(&peer->child, question, answer, sizeof(answer), err);
}

static int run(void *self, int calls, double *seconds, struct hvd_error *err)
{
    struct peer *peer = self;
    char question[64], answer[256];
    int status;

    snprintf(question, sizeof(question), "run %d", calls);
    status = bench_child_ask(&peer->child, question, answer, sizeof(answer), err);
    if (status == 0) {
        *seconds = strtod(answer, NULL);
    }
    return status;
}

static int check(void *self, struct hvd_error *err)
{
    struct peer *peer = self;
    char answer[256];

    return bench_child_ask(&peer->child, "check", answer, sizeof(answer), err);
}

static void finish(void *self)
{
    (void)self;
}

static void destroy(void *self)
{
    struct peer *peer = self;

    bench_child_stop(&peer->child);
    free(peer);
}

static const struct bench_contender_ops ops = {
    .prepare = prepare,
    .run = run,
    .check = check,
    .finish = finish,
    .destroy = destroy,
};

static int create(const struct recipe *recipe, const struct bench_job *job,
                  const char *python, struct bench_contender *out, struct hvd_error *err)
{
    struct peer *peer = calloc(1, sizeof(*peer));
    int status;

    if (peer == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    status = meet(peer, job, recipe, python, err);
    if (status < 0) {
        destroy(peer);
        return status;
    }
    *out = (struct bench_contender){.name = recipe->name, .ops = &ops, .self = peer};
    return 0;
}

int bench_gloo_create(const struct bench_job *job, const char *program,
                      struct bench_contender *out, struct hvd_error *err)
{
    static const struct recipe recipe = {"gloo", "peer_torch.py"};

    return create(&recipe, job, program != NULL ? program : "/usr/bin/python3", out, err);
}

int bench_horovod_create(const struct bench_job *job, const char *program,
                         struct bench_contender *out, struct hvd_error *err)
{
    static const struct recipe recipe = {"horovod", "peer_horovod.py"};

    if (program == NULL) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "say which Python has it: horovod=PYTHON; "
                        "contrib/bench/horovod_env.sh makes one");
    }
    return create(&recipe, job, program, out, err);
}
