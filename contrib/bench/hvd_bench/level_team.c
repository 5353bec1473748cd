/* SPDX-License-Identifier: Apache-2.0 */
/* The level "team": the schedule run by the caller on agreed buffers, which is what a call of
 * MPI does. All tensors of a list are one run, but for broadcast, which has one tensor. hvd's own threads rest from open to close, so
 * only while this is timed: the ranks talk about it through hvd. */
#include <stdlib.h>

#include "collectives/api/direct.h"
#include "contrib/bench/hvd_bench/contender.h"

struct team {
    const struct bench_work *work;
    int count;
    struct hvd_direct *runs[BENCH_MOST_TENSORS];
};

static int kind_of(enum bench_collective collective, struct hvd_start *start)
{
    static const struct {
        enum hvd_kind kind;
        const char *word;
    } kinds[BENCH_COLLECTIVES] = {
        [BENCH_ALLREDUCE] = {HVD_KIND_ALLREDUCE, "Allreduce"},
        [BENCH_ALLGATHER] = {HVD_KIND_ALLGATHER, "Allgather"},
        [BENCH_BROADCAST] = {HVD_KIND_BROADCAST, "Broadcast"},
        [BENCH_REDUCESCATTER] = {HVD_KIND_REDUCESCATTER, "Reducescatter"},
    };

    start->kind = kinds[collective].kind;
    start->word = kinds[collective].word;
    return start->word != NULL ? 0 : HVD_ERR_UNSUPPORTED;
}

static void describe(const struct bench_work *work, struct hvd_tensor *tensors)
{
    for (int i = 0; i < work->tensors; i++) {
        size_t offset = (size_t)work->places[i] * work->element;

        tensors[i] = (struct hvd_tensor){.name = "hvd-bench team",
                                         .input = work->input + offset,
                                         .output = work->output + offset,
                                         .shape = &work->counts[i],
                                         .ndim = 1,
                                         .dtype = work->dtype,
                                         .device = HVD_DEVICE_CPU};
    }
}

static int plan(struct team *team, struct hvd_start *start,
                const struct hvd_tensor *tensors, struct hvd_error *err)
{
    int status = hvd_direct_open(err);

    bool is_one_by_one = start->kind == HVD_KIND_BROADCAST;
    int runs = is_one_by_one ? team->work->tensors : 1;

    if (status < 0) {
        return status;
    }
    while (team->count < runs && status == 0) {
        status = hvd_direct_plan(start, &tensors[team->count],
                                 is_one_by_one ? 1 : team->work->tensors,
                                 &team->runs[team->count], err);
        team->count += status == 0;
    }
    hvd_direct_close();
    return status;
}

static int prepare(void *self, struct bench_work *work, struct hvd_error *err)
{
    struct hvd_start start = {.op = work->op, .prescale = 1, .postscale = 1};
    struct team *team = self;
    struct hvd_tensor *tensors;
    int status = bench_runtime_supports(work, err);

    if (status < 0 || kind_of(work->collective, &start) < 0) {
        return status < 0 ? status
                          : hvd_fail(err, HVD_ERR_UNSUPPORTED, "has no %s",
                                     bench_collective_name(work->collective));
    }
    tensors = calloc((size_t)work->tensors, sizeof(tensors[0]));
    if (tensors == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    describe(work, tensors);
    team->work = work;
    status = plan(team, &start, tensors, err);
    free(tensors);
    return status;
}

static int run(void *self, int calls, double *seconds, struct hvd_error *err)
{
    struct team *team = self;
    int status = hvd_direct_open(err);
    double start = bench_now();

    if (status < 0) {
        return status;
    }
    for (int call = 0; call < calls && status == 0; call++) {
        for (int i = 0; i < team->count && status == 0; i++) {
            status = hvd_direct_run(team->runs[i], err);
        }
    }
    *seconds = bench_now() - start;
    hvd_direct_close();
    return status;
}

/* The output of allgather is in the run. */
static int check(void *self, struct hvd_error *err)
{
    struct team *team = self;
    double seconds;
    int status = run(self, 1, &seconds, err);
    const void *result;

    if (status < 0) {
        return status;
    }
    result = hvd_direct_result(team->runs[0]);
    return bench_work_check(team->work, result != NULL ? result : team->work->output,
                            "hvd team", err);
}

static void finish(void *self)
{
    struct team *team = self;

    while (team->count > 0) {
        hvd_direct_destroy(team->runs[--team->count]);
    }
}

static const struct bench_contender_ops ops = {
    .prepare = prepare,
    .run = run,
    .check = check,
    .finish = finish,
    .destroy = free,
};

int bench_team_create(const struct bench_job *job, const char *program,
                      struct bench_contender *out, struct hvd_error *err)
{
    struct team *team = calloc(1, sizeof(*team));

    (void)job;
    (void)program;
    if (team == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    *out = (struct bench_contender){.name = "team", .ops = &ops, .self = team};
    return 0;
}
