/* SPDX-License-Identifier: Apache-2.0 */
/* The level "runtime": through hvd.h, as a training does. The tensors of a list are submitted one
 * by one, in the order in which backward makes them, then waited for. Also "one", which is the same
 * on a single tensor of the list's bytes. */
#include <stdio.h>
#include <stdlib.h>

#include "contrib/bench/hvd_bench/contender.h"

struct runtime {
    bool is_one;
    struct bench_work *work;
    int count;
    struct hvd_tensor *tensors; /* [count] */
    int64_t *shapes;
    char (*names)[32];
    struct hvd_request **requests; /* [2 * count]: messages have one for each side */
};

static void finish(void *self)
{
    struct runtime *runtime = self;

    free(runtime->tensors);
    free(runtime->shapes);
    free(runtime->names);
    free(runtime->requests);
    *runtime = (struct runtime){.is_one = runtime->is_one};
}

static void describe(struct runtime *runtime)
{
    const struct bench_work *work = runtime->work;

    for (int i = 0; i < runtime->count; i++) {
        size_t offset = (size_t)work->places[i] * work->element;

        snprintf(runtime->names[i], sizeof(runtime->names[i]), "hvd-bench %s%d",
                 runtime->is_one ? "one " : "", i);
        runtime->shapes[i] = runtime->is_one ? work->input_count : work->counts[i];
        runtime->tensors[i] = (struct hvd_tensor){.name = runtime->names[i],
                                                  .input = work->input + offset,
                                                  .output = work->output + offset,
                                                  .shape = &runtime->shapes[i],
                                                  .ndim = 1,
                                                  .dtype = work->dtype,
                                                  .device = HVD_DEVICE_CPU,
                                                  .wire = work->wire};
        if (work->collective == BENCH_GATHER) {
            runtime->tensors[i].output_bytes = (size_t)work->output_count * work->element;
        }
    }
}

/* What hvd refuses is no failure of the benchmark. */
int bench_runtime_supports(const struct bench_work *work, struct hvd_error *err)
{
    if (work->dtype == HVD_BOOL && work->op == HVD_AVERAGE) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "there is no average of booleans");
    }
    return 0;
}

static int prepare(void *self, struct bench_work *work, struct hvd_error *err)
{
    struct runtime *runtime = self;
    size_t count;

    if (bench_runtime_supports(work, err) < 0) {
        return HVD_ERR_UNSUPPORTED;
    }
    if (runtime->is_one && work->list == NULL) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "only beside a --list");
    }
    runtime->work = work;
    runtime->count = runtime->is_one || work->tensors == 0 ? 1 : work->tensors;
    count = (size_t)runtime->count;
    runtime->tensors = calloc(count, sizeof(runtime->tensors[0]));
    runtime->shapes = calloc(count, sizeof(runtime->shapes[0]));
    runtime->names = calloc(count, sizeof(runtime->names[0]));
    runtime->requests = calloc(2 * count, sizeof(struct hvd_request *));
    if (runtime->tensors == NULL || runtime->shapes == NULL || runtime->names == NULL ||
        runtime->requests == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    if (work->tensors > 0) {
        describe(runtime);
    }
    return 0;
}

static int submit(const struct runtime *runtime, const struct hvd_tensor *tensor,
                  struct hvd_request **request, struct hvd_error *err)
{
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

/* All messages at once: to the next rank, from the one before. */
static int start_messages(const struct runtime *runtime, struct hvd_error *err)
{
    const struct bench_work *work = runtime->work;
    const int next = (work->rank + 1) % work->size;
    const int before = (work->rank + work->size - 1) % work->size;
    int status = 0;

    for (int i = 0; i < runtime->count && status == 0; i++) {
        const struct hvd_tensor *tensor = &runtime->tensors[i];
        struct hvd_request **requests = &runtime->requests[2 * i];

        status = hvd_recv_start(tensor, before, 0, HVD_SET_GLOBAL, &requests[0], err);
        if (status == 0) {
            status = hvd_send_start(tensor, next, 0, HVD_SET_GLOBAL, &requests[1], err);
        }
    }
    return status;
}

static int run_messages(const struct runtime *runtime, struct hvd_error *err)
{
    int status = start_messages(runtime, err);

    for (int i = 0; i < 2 * runtime->count && status == 0; i++) {
        status = hvd_wait(runtime->requests[i], err);
    }
    return status;
}

/* There and back: rank 0 sends first. */
static int run_ping_pong(const struct runtime *runtime, struct hvd_error *err)
{
    const struct bench_work *work = runtime->work;
    const int other = work->rank ^ 1;
    int status = 0;

    for (int i = 0; i < 2 && status == 0 && other < work->size; i++) {
        const bool sends = (i == 0) == (work->rank < other);
        struct hvd_request **request = &runtime->requests[i];

        status = sends ? hvd_send_start(runtime->tensors, other, 0, HVD_SET_GLOBAL,
                                        request, err)
                       : hvd_recv_start(runtime->tensors, other, 0, HVD_SET_GLOBAL,
                                        request, err);
        if (status == 0) {
            status = hvd_wait(*request, err);
        }
    }
    return status;
}

/* Starts all there is, then waits for all. */
static int run_collective(struct runtime *runtime, struct hvd_error *err)
{
    int status = 0, started = 0;

    while (started < runtime->count && status == 0) {
        status =
            submit(runtime, &runtime->tensors[started], &runtime->requests[started], err);
        started += status == 0;
    }
    for (int i = 0; i < started && status == 0; i++) {
        status = hvd_wait(runtime->requests[i], err);
    }
    return status;
}

/* The requests are the caller's to free. */
static int run_once(struct runtime *runtime, struct hvd_error *err)
{
    switch (runtime->work->collective) {
    case BENCH_SENDRECV:
        return run_messages(runtime, err);
    case BENCH_PINGPONG:
        return run_ping_pong(runtime, err);
    default:
        return run_collective(runtime, err);
    }
}

static void free_requests(struct runtime *runtime)
{
    for (int i = 0; i < 2 * runtime->count; i++) {
        hvd_request_free(runtime->requests[i]);
        runtime->requests[i] = NULL;
    }
}

static int run(void *self, int calls, double *seconds, struct hvd_error *err)
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

/* hvd makes the output of allgather and alltoall itself. */
static int check(void *self, struct hvd_error *err)
{
    struct runtime *runtime = self;
    const struct bench_work *work = runtime->work;
    const char *who = runtime->is_one ? "one" : "hvd runtime";
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
    .prepare = prepare,
    .run = run,
    .check = check,
    .finish = finish,
    .destroy = free,
};

static int create(const char *name, bool is_one, struct bench_contender *out,
                  struct hvd_error *err)
{
    struct runtime *runtime = calloc(1, sizeof(*runtime));

    if (runtime == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    runtime->is_one = is_one;
    *out = (struct bench_contender){.name = name, .ops = &ops, .self = runtime};
    return 0;
}

int bench_runtime_create(const struct bench_job *job, const char *program,
                         struct bench_contender *out, struct hvd_error *err)
{
    (void)job;
    (void)program;
    return create("runtime", false, out, err);
}

int bench_one_create(const struct bench_job *job, const char *program,
                     struct bench_contender *out, struct hvd_error *err)
{
    (void)job;
    (void)program;
    return create("one", true, out, err);
}
