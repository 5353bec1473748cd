/* SPDX-License-Identifier: Apache-2.0 */
/* The level "runtime": collectives through hvd.h, as in a training. */
#include <stdio.h>
#include <stdlib.h>

#include "contrib/bench/hvd_bench/contender.h"

struct runtime {
    struct bench_work *work;
    struct hvd_tensor tensor;
    struct hvd_request *requests[2]; /* requests of messages, one for each direction */
};

int bench_runtime_supports(const struct bench_work *work, struct hvd_error *err)
{
    if (work->dtype == HVD_BOOL && work->op == HVD_AVERAGE) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "there is no average of booleans");
    }
    return 0;
}

static int prepare_runtime(void *self, struct bench_work *work, struct hvd_error *err)
{
    struct runtime *runtime = self;

    runtime->work = work;
    runtime->tensor = (struct hvd_tensor){.name = "hvd-bench",
                                          .input = work->input,
                                          .output = work->output,
                                          .shape = &work->input_count,
                                          .ndim = 1,
                                          .dtype = work->dtype,
                                          .device = HVD_DEVICE_CPU};
    if (work->collective == BENCH_GATHER) {
        runtime->tensor.output_bytes = (size_t)work->output_count * work->element;
    }
    return bench_runtime_supports(work, err);
}

static int submit_runtime(struct runtime *runtime, struct hvd_error *err)
{
    const struct hvd_tensor *tensor = &runtime->tensor;
    struct hvd_request **request = &runtime->requests[0];
    enum hvd_op op = runtime->work->op;

    switch (runtime->work->collective) {
    case BENCH_ALLREDUCE:
        return hvd_allreduce_start(tensor, 1, op, 1, 1, HVD_SET_GLOBAL, request, err);
    case BENCH_ALLGATHER:
        return hvd_allgather_start(tensor, 1, HVD_SET_GLOBAL, request, err);
    case BENCH_BROADCAST:
        return hvd_broadcast_start(tensor, 0, HVD_SET_GLOBAL, request, err);
    case BENCH_ALLTOALL:
        return hvd_alltoall_start(tensor, NULL, 0, HVD_SET_GLOBAL, request, err);
    case BENCH_REDUCESCATTER:
        return hvd_reducescatter_start(tensor, 1, op, 1, 1, HVD_SET_GLOBAL, request, err);
    case BENCH_REDUCE:
        return hvd_reduce_start(tensor, op, 1, 1, 0, HVD_SET_GLOBAL, request, err);
    case BENCH_GATHER:
        return hvd_gather_start(tensor, 0, HVD_SET_GLOBAL, request, err);
    case BENCH_SCATTER:
        return hvd_scatter_start(tensor, 0, HVD_SET_GLOBAL, request, err);
    default:
        return hvd_barrier_start(HVD_SET_GLOBAL, request, err);
    }
}

/* Sends to the next rank and receives from the one before. */
static int start_messages(struct runtime *runtime, struct hvd_error *err)
{
    const struct bench_work *work = runtime->work;
    const int next = (work->rank + 1) % work->size;
    const int before = (work->rank + work->size - 1) % work->size;
    int status = hvd_recv_start(&runtime->tensor, before, 0, HVD_SET_GLOBAL,
                                &runtime->requests[0], err);

    return status < 0 ? status
                      : hvd_send_start(&runtime->tensor, next, 0, HVD_SET_GLOBAL,
                                       &runtime->requests[1], err);
}

/* Sends a message there and back; the lower rank of a pair sends first. */
static int run_ping_pong(struct runtime *runtime, struct hvd_error *err)
{
    const struct bench_work *work = runtime->work;
    const int other = work->rank ^ 1;
    int status = 0;

    for (int i = 0; i < 2 && status == 0 && other < work->size; i++) {
        const bool sends = (i == 0) == (work->rank < other);
        struct hvd_request **request = &runtime->requests[i];

        status = sends ? hvd_send_start(&runtime->tensor, other, 0, HVD_SET_GLOBAL,
                                        request, err)
                       : hvd_recv_start(&runtime->tensor, other, 0, HVD_SET_GLOBAL,
                                        request, err);
        if (status == 0) {
            status = hvd_wait(*request, err);
        }
    }
    return status;
}

/* Starts the work once and waits for its end. The caller frees the requests. */
static int run_once(struct runtime *runtime, struct hvd_error *err)
{
    int status;

    if (runtime->work->collective == BENCH_PINGPONG) {
        return run_ping_pong(runtime, err);
    }
    if (runtime->work->collective == BENCH_SENDRECV) {
        status = start_messages(runtime, err);
    } else {
        status = submit_runtime(runtime, err);
    }
    for (int i = 0; i < 2 && status == 0 && runtime->requests[i] != NULL; i++) {
        status = hvd_wait(runtime->requests[i], err);
    }
    return status;
}

static void free_requests(struct runtime *runtime)
{
    for (int i = 0; i < 2; i++) {
        hvd_request_free(runtime->requests[i]);
        runtime->requests[i] = NULL;
    }
}

static int run_runtime(void *self, int calls, double *seconds, struct hvd_error *err)
{
    struct runtime *runtime = self;
    double start = bench_now();
    int status = 0;

    for (int call = 0; call < calls && status == 0; call++) {
        status = run_once(runtime, err);
        free_requests(runtime);
    }
    *seconds = bench_now() - start;
    return status;
}

/* Checks the result; hvd allocates the output of allgather and alltoall. */
static int check_runtime(void *self, struct hvd_error *err)
{
    static const char who[] = "hvd runtime";
    struct runtime *runtime = self;
    const struct bench_work *work = runtime->work;
    void *taken = NULL;
    int64_t rows = 0;
    int status = run_once(runtime, err);

    if (status == 0 &&
        (work->collective == BENCH_ALLGATHER || work->collective == BENCH_ALLTOALL)) {
        status = hvd_request_take(runtime->requests[0], 0, &taken, &rows);
        if (status < 0 || rows != work->output_count) {
            status = hvd_fail(err, HVD_ERR_MISMATCH, "%s gave %lld elements, not %lld",
                              who, (long long)rows, (long long)work->output_count);
        }
    }
    if (status == 0) {
        status = bench_work_check(work, taken != NULL ? taken : work->output, who, err);
    }
    hvd_free(taken);
    free_requests(runtime);
    return status;
}

static const struct bench_contender_ops ops = {
    .prepare = prepare_runtime,
    .run = run_runtime,
    .check = check_runtime,
    .destroy = free,
};

int bench_runtime_create(const struct bench_job *job, const char *program,
                         struct bench_contender *out, struct hvd_error *err)
{
    (void)job;
    (void)program;
    return bench_contender_create("runtime", &ops, sizeof(struct runtime), out, err);
}
