/* SPDX-License-Identifier: Apache-2.0 */
/* The peer "limit": tries its plans for each size and uses the fastest. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "contrib/bench/hvd_bench/contender.h"
#include "contrib/bench/hvd_bench/limit.h"
#include "gpu_binding/base/clock.h"

enum {
    MOST_RANKS = 256,
    TRIALS = 3
};

struct peer {
    struct bench_limit limit;
    struct bench_limit_plan plan;
    struct bench_work *work;
    void *memory;
    size_t bytes;
};

static void run_plan(struct peer *peer, const struct bench_limit_plan *plan, int calls)
{
    for (int call = 0; call < calls; call++) {
        bench_limit_sum(&peer->limit, plan, (const float *)peer->work->input,
                        (float *)peer->work->output, peer->work->input_count);
    }
}

static int calls_of(const struct bench_work *work)
{
    return work->bytes < 64 * 1024 ? 500 : work->bytes < 4 << 20 ? 20 : 2;
}

/* Times each plan a few times, in turns, and chooses the fastest. The ranks have the same
 * times, so they choose the same plan. */
static int choose_plan(struct peer *peer, struct hvd_error *err)
{
    struct bench_limit_plan plans[BENCH_LIMIT_PLANS];
    int count = bench_limit_plans((size_t)peer->work->bytes, plans), status = 0, best = 0;
    int calls = calls_of(peer->work);
    double times[BENCH_LIMIT_PLANS] = {0};

    for (int trial = 0; trial < TRIALS && status == 0; trial++) {
        for (int i = 0; i < count; i++) {
            double start = bench_now(), took;

            run_plan(peer, &plans[i], calls);
            took = bench_now() - start;
            times[i] = trial == 0 || took < times[i] ? took : times[i];
        }
        status = bench_job_barrier(err);
    }
    if (status == 0) {
        status = bench_job_most(times, count, err);
    }
    for (int i = 1; i < count; i++) {
        best = times[i] < times[best] ? i : best;
    }
    peer->plan = plans[best];
    return status;
}

static int prepare_limit(void *self, struct bench_work *work, struct hvd_error *err)
{
    struct peer *peer = self;

    if (work->collective != BENCH_ALLREDUCE || work->dtype != HVD_FLOAT32 ||
        work->op != HVD_SUM) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "it is for sums of float32 by allreduce only");
    }
    peer->work = work;
    return choose_plan(peer, err);
}

static int run_limit(void *self, int calls, double *seconds, struct hvd_error *err)
{
    struct peer *peer = self;
    double start = bench_now();

    (void)err;
    run_plan(peer, &peer->plan, calls);
    *seconds = bench_now() - start;
    return 0;
}

static void destroy_limit(void *self)
{
    struct peer *peer = self;

    munmap(peer->memory, peer->bytes);
    free(peer);
}

static const struct bench_contender_ops ops = {
    .prepare = prepare_limit,
    .run = run_limit,
    .destroy = destroy_limit,
};

/* The name of the shared memory. It exists until all ranks have opened the memory. */
struct name {
    char text[64];
};

/* Creates the memory, on the node's first rank. On failure *fd may be -1. */
static int make_memory(size_t bytes, struct name *name, int *fd, struct hvd_error *err)
{
    snprintf(name->text, sizeof(name->text), "/hvd-bench-%d-%lld", (int)getpid(),
             (long long)hvd_clock_ns());
    *fd = shm_open(name->text, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (*fd < 0) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot create memory in /dev/shm: %m");
    }
    errno = posix_fallocate(*fd, 0, (off_t)bytes);
    return errno == 0
               ? 0
               : hvd_fail(err, HVD_ERR_NOMEM,
                          "cannot get %zu bytes of shared memory: %m; make room in "
                          "/dev/shm",
                          bytes);
}

static int map_memory(int fd, size_t bytes, void **memory, struct hvd_error *err)
{
    void *mapped;

    if (fd < 0) {
        return hvd_fail(err, HVD_ERR_SYS,
                        "cannot open the memory of the node's first rank: %m");
    }
    mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (mapped == MAP_FAILED) {
        return hvd_fail(err, HVD_ERR_SYS, "cannot map %zu bytes: %m", bytes);
    }
    *memory = mapped;
    return 0;
}

/* Opens zeroed memory that all ranks share, with all its pages allocated. It succeeds on
 * all ranks or on none. */
static int open_memory(const struct bench_job *job, size_t bytes, void **memory,
                       struct hvd_error *err)
{
    struct name mine = {.text = ""}, *names = calloc((size_t)job->size, sizeof(names[0]));
    int fd = -1,
        status = names != NULL ? 0 : hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    bool is_first = job->rank == 0;

    if (is_first && status == 0) {
        status = make_memory(bytes, &mine, &fd, err);
    }
    status = bench_job_agree(status, err);
    if (status == 0) {
        status = bench_job_gather(&mine, sizeof(mine), names, err);
    }
    if (status == 0) {
        fd = is_first ? fd : shm_open(names[0].text, O_RDWR | O_CLOEXEC, 0);
        status = bench_job_agree(map_memory(fd, bytes, memory, err), err);
    }
    if (is_first && fd >= 0) {
        shm_unlink(mine.text);
    }
    if (fd >= 0) {
        close(fd);
    }
    if (status < 0 && *memory != NULL) {
        munmap(*memory, bytes);
    }
    free(names);
    return status;
}

int bench_limit_create(const struct bench_job *job, const char *program,
                       struct bench_contender *out, struct hvd_error *err)
{
    struct peer *peer;
    void *memory = NULL;
    size_t bytes = bench_limit_memory_bytes(job->size);
    int status;

    (void)program;
    if (job->layout.nodes != 1 || job->size > MOST_RANKS) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "it is for up to %d ranks on one node; between two nodes there "
                        "is ucx-limit",
                        MOST_RANKS);
    }
    status = open_memory(job, bytes, &memory, err);
    if (status < 0) {
        return status;
    }
    status = bench_contender_create("limit", &ops, sizeof(*peer), out, err);
    if (status < 0) {
        munmap(memory, bytes);
        return status;
    }
    peer = out->self;
    peer->memory = memory;
    peer->bytes = bytes;
    bench_limit_init(&peer->limit, memory, job->rank, job->size);
    return 0;
}
