/* SPDX-License-Identifier: Apache-2.0 */
/* The peer "limit": tries its plans for each size and uses the fastest. */
#include "contrib/bench/hvd_bench/contender.h"
#include "contrib/bench/hvd_bench/limit_setup.h"

struct peer {
    struct bench_limit limit;
    struct bench_limit_plan plan;
    struct bench_work *work;
};

static int prepare_limit(void *self, struct bench_work *work, struct hvd_error *err)
{
    struct peer *peer = self;
    int status = bench_limit_supports(work, err);

    peer->work = work;
    return status < 0 ? status : bench_limit_choose(&peer->limit, work, &peer->plan, err);
}

static int run_limit(void *self, int calls, double *seconds, struct hvd_error *err)
{
    struct peer *peer = self;
    double start = bench_now();

    (void)err;
    bench_limit_run(&peer->limit, peer->work, &peer->plan, calls);
    *seconds = bench_now() - start;
    return 0;
}

static void destroy_limit(void *self)
{
    struct peer *peer = self;

    bench_limit_close(&peer->limit);
    free(peer);
}

static const struct bench_contender_ops ops = {
    .prepare = prepare_limit,
    .run = run_limit,
    .destroy = destroy_limit,
};

int bench_limit_create(const struct bench_job *job, const char *program,
                       struct bench_contender *out, struct hvd_error *err)
{
    int status;

    (void)program;
    if (job->layout.nodes != 1) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "it is for ranks on one node; between two nodes there is "
                        "ucx-limit");
    }
    status = bench_contender_create("limit", &ops, sizeof(struct peer), out, err);
    status = bench_job_agree(status, err);
    if (status == 0) {
        status = bench_limit_open(&((struct peer *)out->self)->limit, job, NULL, err);
    }
    if (status < 0) {
        free(out->self);
        out->self = NULL;
    }
    return status;
}
