/* SPDX-License-Identifier: Apache-2.0 */
/* The peer "limit": the fastest of its plans for each size, as tried there and then. */
#include <stdlib.h>

#include "contrib/bench/hvd_bench/contender.h"
#include "contrib/bench/hvd_bench/limit.h"
#include "contrib/bench/hvd_bench/node_memory.h"

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

/* The best of a few tries each, in turns; the ranks decide by the same times. */
static int choose(struct peer *peer, struct hvd_error *err)
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

static int prepare(void *self, struct bench_work *work, struct hvd_error *err)
{
    struct peer *peer = self;

    if (work->collective != BENCH_ALLREDUCE || work->dtype != HVD_FLOAT32 ||
        work->op != HVD_SUM) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "only sums of float32, by allreduce");
    }
    peer->work = work;
    return choose(peer, err);
}

static int run(void *self, int calls, double *seconds, struct hvd_error *err)
{
    struct peer *peer = self;
    double start = bench_now();

    (void)err;
    run_plan(peer, &peer->plan, calls);
    *seconds = bench_now() - start;
    return 0;
}

static void destroy(void *self)
{
    struct peer *peer = self;

    bench_node_memory_close(peer->memory, peer->bytes);
    free(peer);
}

static const struct bench_contender_ops ops = {
    .prepare = prepare,
    .run = run,
    .destroy = destroy,
};

int bench_limit_create(const struct bench_job *job, const char *program,
                       struct bench_contender *out, struct hvd_error *err)
{
    struct peer *peer;
    void *memory;
    size_t bytes = bench_limit_memory_bytes(job->size);
    int status;

    (void)program;
    if (job->layout.nodes != 1 || job->size > MOST_RANKS) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "it is for up to %d ranks on one node; between two nodes there "
                        "is ucx-limit",
                        MOST_RANKS);
    }
    status = bench_node_memory_open(job, bytes, &memory, err);
    if (status < 0) {
        return status;
    }
    peer = calloc(1, sizeof(*peer));
    if (peer == NULL) {
        bench_node_memory_close(memory, bytes);
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    peer->memory = memory;
    peer->bytes = bytes;
    bench_limit_init(&peer->limit, memory, job->rank, job->size);
    *out = (struct bench_contender){.name = "limit", .ops = &ops, .self = peer};
    return 0;
}
