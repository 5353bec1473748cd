/* SPDX-License-Identifier: Apache-2.0 */
/* The level "team": the calling thread runs the schedule at once, as a call of MPI does,
 * on buffers that the ranks agreed on before. A barrier is an allreduce of one byte.
 * hvd's own threads are paused only while this level is timed, from open to close: at
 * other times the ranks communicate through hvd. */
#include <stdlib.h>

#include "collectives/schedule/algorithm.h"
#include "contrib/bench/direct/direct.h"
#include "contrib/bench/hvd_bench/contender.h"

struct team {
    const struct bench_work *work;
    const struct hvd_algorithm_choices *choices; /* NULL: the job's */
    /* the built-in choices, for bench_builtin_create */
    struct hvd_algorithm_choices usual;
    struct hvd_direct *run;
    char pulse[2]; /* input and output of a barrier */
};

static void choose_kind(enum bench_collective collective, struct hvd_start *start)
{
    static const struct {
        enum hvd_kind kind;
        const char *word;
    } kinds[BENCH_COLLECTIVES] = {
        [BENCH_ALLREDUCE] = {HVD_KIND_ALLREDUCE, "Allreduce"},
        [BENCH_ALLGATHER] = {HVD_KIND_ALLGATHER, "Allgather"},
        [BENCH_BROADCAST] = {HVD_KIND_BROADCAST, "Broadcast"},
        [BENCH_ALLTOALL] = {HVD_KIND_ALLTOALL, "Alltoall"},
        [BENCH_BARRIER] = {HVD_KIND_ALLREDUCE, "Barrier"},
        [BENCH_REDUCESCATTER] = {HVD_KIND_REDUCESCATTER, "Reducescatter"},
        [BENCH_REDUCE] = {HVD_KIND_REDUCE, "Reduce"},
        [BENCH_GATHER] = {HVD_KIND_GATHER, "Gather"},
        [BENCH_SCATTER] = {HVD_KIND_SCATTER, "Scatter"},
    };

    start->kind = kinds[collective].kind;
    start->word = kinds[collective].word;
}

/* Describes the buffers; as in MPI, the root of a broadcast has one buffer only. */
static void describe_tensor(const struct bench_work *work, struct hvd_tensor *tensor)
{
    bool is_root = work->collective == BENCH_BROADCAST && work->rank == 0;

    *tensor = (struct hvd_tensor){.name = "hvd-bench team",
                                  .input = work->input,
                                  .output = is_root ? work->input : work->output,
                                  .shape = &work->input_count,
                                  .ndim = 1,
                                  .dtype = work->dtype,
                                  .device = HVD_DEVICE_CPU};
    if (work->collective == BENCH_GATHER) {
        tensor->output_bytes = (size_t)work->output_count * work->element;
    }
}

static void describe_barrier(struct team *team, struct hvd_tensor *tensor)
{
    static const int64_t one = 1;

    *tensor = (struct hvd_tensor){.name = "hvd-bench barrier",
                                  .input = &team->pulse[0],
                                  .output = &team->pulse[1],
                                  .shape = &one,
                                  .ndim = 1,
                                  .dtype = HVD_UINT8,
                                  .device = HVD_DEVICE_CPU};
}

static int plan(struct team *team, struct hvd_start *start,
                const struct hvd_tensor *tensor, struct hvd_error *err)
{
    int status = hvd_direct_open(err);

    if (status < 0) {
        return status;
    }
    hvd_direct_choose(team->choices);
    status = hvd_direct_plan(start, tensor, 1, &team->run, err);
    hvd_direct_choose(NULL);
    hvd_direct_close();
    return status;
}

static int prepare_team(void *self, struct bench_work *work, struct hvd_error *err)
{
    struct hvd_start start = {.op = work->op, .prescale = 1, .postscale = 1};
    struct team *team = self;
    struct hvd_tensor tensor;
    int status = bench_runtime_supports(work, err);

    if (status == 0 && bench_collective_is_of_pairs(work->collective)) {
        status = hvd_fail(err, HVD_ERR_UNSUPPORTED, "messages have no schedule");
    }
    if (status < 0) {
        return status;
    }
    choose_kind(work->collective, &start);
    if (work->collective == BENCH_BARRIER) {
        start.op = HVD_MAX;
        describe_barrier(team, &tensor);
    } else {
        describe_tensor(work, &tensor);
    }
    team->work = work;
    return plan(team, &start, &tensor, err);
}

static int run_team(void *self, int calls, double *seconds, struct hvd_error *err)
{
    struct team *team = self;
    int status = hvd_direct_open(err);
    double start = bench_now();

    if (status < 0) {
        return status;
    }
    for (int call = 0; call < calls && status == 0; call++) {
        status = hvd_direct_run(team->run, err);
    }
    *seconds = bench_now() - start;
    hvd_direct_close();
    return status;
}

/* Checks the result; the output of allgather and alltoall belongs to the run. */
static int check_team(void *self, struct hvd_error *err)
{
    struct team *team = self;
    const struct bench_work *work = team->work;
    double seconds;
    int status = run_team(self, 1, &seconds, err);
    bool is_root = work->collective == BENCH_BROADCAST && work->rank == 0;
    const void *result;

    if (status < 0) {
        return status;
    }
    result = hvd_direct_result(team->run);
    result = result == NULL && is_root ? work->input : result;
    return bench_work_check(work, result != NULL ? result : work->output, "hvd team",
                            err);
}

static void finish_team(void *self)
{
    struct team *team = self;

    if (team->run != NULL) {
        hvd_direct_destroy(team->run);
        team->run = NULL;
    }
}

static const struct bench_contender_ops ops = {
    .prepare = prepare_team,
    .run = run_team,
    .check = check_team,
    .finish = finish_team,
    .destroy = free,
};

int bench_forced_create(const struct hvd_algorithm_choices *choices, const char *name,
                        struct bench_contender *out, struct hvd_error *err)
{
    int status = bench_contender_create(name, &ops, sizeof(struct team), out, err);

    if (status == 0) {
        ((struct team *)out->self)->choices = choices;
    }
    return status;
}

int bench_team_create(const struct bench_job *job, const char *program,
                      struct bench_contender *out, struct hvd_error *err)
{
    (void)job;
    (void)program;
    return bench_forced_create(NULL, "team", out, err);
}

int bench_builtin_create(const struct bench_job *job, const char *program,
                         struct bench_contender *out, struct hvd_error *err)
{
    int status = bench_forced_create(NULL, "builtin", out, err);
    struct team *team = status == 0 ? out->self : NULL;

    (void)program;
    if (team != NULL) {
        hvd_algorithm_choices_builtin(hvd_job_shape_here(&job->layout), &team->usual);
        team->choices = &team->usual;
    }
    return status;
}
