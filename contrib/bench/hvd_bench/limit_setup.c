/* SPDX-License-Identifier: Apache-2.0 */
#include "contrib/bench/hvd_bench/limit_setup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu_binding/base/clock.h"

enum {
    MOST_RANKS = 256, /* of a node */
    TRIALS = 3
};

/* The name of the shared memory. It exists until all ranks have opened the memory. */
struct name {
    char text[64];
};

/* Creates the memory, on a node's first rank. On failure *fd may be -1. */
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

/* Opens zeroed memory that the ranks of a node share, with all its pages allocated. It
 * succeeds on all ranks of the job or on none. */
static int open_memory(const struct bench_job *job, size_t bytes, void **memory,
                       struct hvd_error *err)
{
    struct name mine = {.text = ""}, *names = calloc((size_t)job->size, sizeof(names[0]));
    int fd = -1,
        status = names != NULL ? 0 : hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    int first = hvd_layout_rank(&job->layout, job->layout.node[job->rank], 0);
    bool is_first = job->rank == first;

    if (is_first && status == 0) {
        status = make_memory(bytes, &mine, &fd, err);
    }
    status = bench_job_agree(status, err);
    if (status == 0) {
        status = bench_job_gather(&mine, sizeof(mine), names, err);
    }
    if (status == 0) {
        fd = is_first ? fd : shm_open(names[first].text, O_RDWR | O_CLOEXEC, 0);
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

int bench_limit_open(struct bench_limit *limit, const struct bench_job *job,
                     const struct bench_limit_exchange *exchange, struct hvd_error *err)
{
    void *memory = NULL;
    int status = job->local_size <= MOST_RANKS
                     ? 0
                     : hvd_fail(err, HVD_ERR_UNSUPPORTED,
                                "it is for up to %d ranks on a node", MOST_RANKS);

    status = bench_job_agree(status, err);
    if (status == 0) {
        status =
            open_memory(job, bench_limit_memory_bytes(job->local_size, exchange != NULL),
                        &memory, err);
    }
    if (status == 0) {
        bench_limit_init(limit, memory, job->local_rank, job->local_size, exchange);
    }
    return status;
}

void bench_limit_close(struct bench_limit *limit)
{
    if (limit->memory != NULL) {
        munmap(limit->memory,
               bench_limit_memory_bytes(limit->ranks, limit->exchange != NULL));
    }
}

int bench_limit_supports(const struct bench_work *work, struct hvd_error *err)
{
    bool is_supported = work->collective == BENCH_ALLREDUCE &&
                        work->dtype == HVD_FLOAT32 && work->op == HVD_SUM;

    return is_supported ? 0
                        : hvd_fail(err, HVD_ERR_UNSUPPORTED,
                                   "it is for sums of float32 by allreduce only");
}

void bench_limit_run(struct bench_limit *limit, const struct bench_work *work,
                     const struct bench_limit_plan *plan, int calls)
{
    for (int call = 0; call < calls; call++) {
        bench_limit_sum(limit, plan, (const float *)work->input, (float *)work->output,
                        work->input_count);
    }
    if (limit->exchange != NULL) {
        limit->exchange->flush(limit->exchange->self);
    }
}

static int calls_of(const struct bench_work *work)
{
    return work->bytes < 64 << 10 ? 500 : work->bytes < 4 << 20 ? 20 : 2;
}

int bench_limit_choose(struct bench_limit *limit, const struct bench_work *work,
                       struct bench_limit_plan *plan, struct hvd_error *err)
{
    struct bench_limit_plan plans[BENCH_LIMIT_PLANS];
    int count = bench_limit_plans(limit, (size_t)work->bytes, plans), status = 0;
    int calls = calls_of(work), best = 0;
    double times[BENCH_LIMIT_PLANS] = {0};

    for (int trial = 0; trial < TRIALS && status == 0; trial++) {
        for (int i = 0; i < count; i++) {
            double start = bench_now(), took;

            bench_limit_run(limit, work, &plans[i], calls);
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
    *plan = plans[best];
    return status;
}
