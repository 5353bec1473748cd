/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the k-th call of CUDA or NCCL fail on the last rank, for each k. With an
 * argument, makes the first calls of some functions fail:
 *   pieces      calls for a tensor that is reduced in pieces
 *   direct      calls for a tensor whose parts are exchanged in GPU memory by UCX
 *   converted   calls for two tensors that travel as float16
 *   measured    calls that measure whether two tensors are worth packing
 *   unmeasured  calls that this measurement can do without
 *   windows     calls that register memory for these tensors with NCCL
 *   lost        the same, with a device that has failed: all later calls fail, too
 *   inboxes     calls that open memory for one kernel that reduces these tensors
 *   names       calls that may come after the first MOST_CALLS calls of a run
 *   roots       calls for collectives with a root, and for messages
 *   end         calls that release objects, also in shutdown; their failure is no error
 * No rank hangs, the error on the last rank names the failed call, and no object is left.
 * Runs as each rank of a job on the stand-in; rank 0 prints TAP. */
#include <string.h>
#include <time.h>

#include "collectives/hvd.h"
#include "tests/collectives/calls.h"
#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/fake_gpu/fake_cuda.h"
#include "tests/tap.h"

enum {
    ROWS = 3, /* rows of a tensor */
    DIRECT_ROWS = 2000, /* enough that each rank has a share to exchange */
    MEASURED_ROWS = 20000, /* more than 64 KiB */
    BYTES = 4 * MEASURED_ROWS * (int)sizeof(float),
    MOST_CALLS = 100, /* later calls only poll events, as often as the rank has to wait */
    MOST_RANKS = 16,
};

static int rank, size, rows = ROWS;
static bool has_pair; /* use only an allreduce of two tensors */
static bool has_roots; /* use only collectives with a root, and messages */
static int pair_wire; /* the wire type of these tensors */
static bool may_succeed; /* if some of these calls fail, the collective may succeed */
static bool is_lasting; /* later calls fail, too, so objects may be left */
/* the failing calls release objects, and may be made in shutdown */
static bool is_of_end;
/* for a call and shutdown, which may wait for NCCL, too */
static int limit_s = 15;
static void *stream;
static float *input, *output;
static struct fake_live before;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int finish(int started, struct hvd_request **request, struct hvd_error *err)
{
    int status = started != 0 ? started : hvd_wait(*request, err);

    hvd_request_free(started != 0 ? NULL : *request);
    return status;
}

/* Sends to the next rank and then receives from the previous one. This cannot deadlock:
 * the send ends once the tensor is in host memory. */
static int exchange(const struct hvd_tensor *tensor, struct hvd_error *err)
{
    struct hvd_request *request = NULL;
    int status = finish(hvd_send_start(tensor, (rank + 1) % size, 1, 0, &request, err),
                        &request, err);

    return status != 0 ? status
                       : finish(hvd_recv_start(tensor, (rank + size - 1) % size, 1, 0,
                                               &request, err),
                                &request, err);
}

static int run_roots(struct hvd_error *err)
{
    const int64_t shape[] = {rows};
    struct hvd_tensor tensor =
        gpu_tensor("t", HVD_FLOAT32, shape, 1, input, output, stream);
    struct hvd_request *request = NULL;
    int status = finish(hvd_reduce_start(&tensor, HVD_SUM, 1, 1, 0, 0, &request, err),
                        &request, err);

    if (status == 0) {
        status =
            finish(hvd_scatter_start(&tensor, size - 1, 0, &request, err), &request, err);
    }
    tensor.output_bytes = BYTES;
    if (status == 0) {
        status =
            finish(hvd_gather_start(&tensor, size - 1, 0, &request, err), &request, err);
    }
    tensor.dtype = HVD_INT16;
    tensor.name = "i";
    if (status == 0) {
        status = finish(hvd_reduce_start(&tensor, HVD_SUM, 1, 1, 0, 0, &request, err),
                        &request, err);
    }
    return status != 0 ? status : exchange(&tensor, err);
}

/* Runs one collective of each kind by NCCL, and one through host memory (int16). With
 * has_pair, runs only an allreduce of two tensors. */
static int run_all(struct hvd_error *err)
{
    const int64_t shape[] = {rows};
    struct hvd_tensor tensor =
        gpu_tensor("t", HVD_FLOAT32, shape, 1, input, output, stream);
    struct hvd_tensor pair[2] = {tensor, tensor};
    /* the first two ranks get all rows */
    const int32_t splits[MOST_RANKS] = {1, ROWS - 1};
    struct hvd_request *request = NULL;
    int status;

    if (has_roots) {
        return run_roots(err);
    }
    pair[0].name = "p";
    pair[1].name = "q";
    pair[1].output = output + rows;
    pair[0].wire = pair[1].wire = pair_wire;
    status = finish(hvd_allreduce_start(pair, 2, HVD_AVERAGE, 1, 1, 0, &request, err),
                    &request, err);
    if (has_pair) {
        return status;
    }
    if (status == 0) {
        status = finish(hvd_allgather_start(&tensor, 1, 0, &request, err), &request, err);
    }
    if (status == 0) {
        status = finish(hvd_broadcast_start(&tensor, 0, 0, &request, err), &request, err);
    }
    if (status == 0) {
        status =
            finish(hvd_reducescatter_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, err),
                   &request, err);
    }
    if (status == 0) {
        status = finish(hvd_alltoall_start(&tensor, splits, size, 0, &request, err),
                        &request, err);
    }
    tensor.dtype = HVD_INT16;
    tensor.name = "i";
    if (status == 0) {
        status = finish(hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, err),
                        &request, err);
    }
    return status;
}

static int left(void)
{
    struct fake_live live;

    fake_gpu_live(&live);
    return fake_live_sum(&live) - fake_live_sum(&before);
}

struct outcome {
    bool was_last; /* no call failed, because there were fewer than k calls */
    bool is_good;
    const char *failed;
};

static bool is_no_failure(void)
{
    return fake_gpu_failed_kernels() || fake_gpu_failed_dispensable() ||
           fake_gpu_failed_memory();
}

/* Whether the last rank must get an error. It need not if a call failed that reads NCCL's
 * state: the next caller that reads it gets the error. */
static bool must_tell(const char *failed)
{
    return failed != NULL && strcmp(failed, "ncclCommGetAsyncError") != 0 &&
           !fake_gpu_failed_at_end() && !is_no_failure();
}

/* For a call of UCX, the error tells the purpose of the call. If a send failed, another
 * error may come first: that the peer cannot be reached. */
static bool is_named(const char *failed, const char *text)
{
    if (strncmp(failed, "ucp_", 4) != 0) {
        return strstr(text, failed) != NULL;
    }
    return strstr(text, "GPU memory to or from rank ") != NULL ||
           (strcmp(failed, "ucp_am_send_nbx") == 0 &&
            strstr(text, "cannot be reached any more (") != NULL);
}

/* Makes the k-th call of this function fail; NULL: the k-th call of any function. */
static struct outcome attempt(const char *function, long k)
{
    struct outcome outcome = {.is_good = true};
    struct hvd_error err = {0};
    const char *failed;
    double begin = now();
    int status;

    call_init();
    fake_gpu_fail_in(function, rank != size - 1 ? 0 : is_lasting ? -k : k);
    status = run_all(&err);
    if (fake_gpu_failed() == NULL && !is_of_end) {
        fake_gpu_fail_at(0); /* no call is to fail in shutdown */
    }
    hvd_shutdown();
    failed = fake_gpu_failed();
    outcome.failed = failed != NULL ? failed : "none";
    if (is_of_end && status != 0) {
        fprintf(stderr, "# call %ld, %s: %d %s\n", k, outcome.failed, status, err.text);
        outcome.is_good = false;
    }
    outcome.was_last = rank == size - 1 && failed == NULL;
    if (is_no_failure() && status != 0) {
        fprintf(stderr, "# call %ld, %s: %d %s\n", k, outcome.failed, status, err.text);
        outcome.is_good = false;
    }
    if (must_tell(failed) && !(may_succeed && status == 0) &&
        (status >= 0 || !is_named(failed, err.text))) {
        fprintf(stderr, "# call %ld, %s: %d %s\n", k, failed, status, err.text);
        outcome.is_good = false;
    }
    fake_gpu_fail_at(0);
    if (now() - begin > limit_s) {
        fprintf(stderr, "# rank %d: call %ld took %.1f s\n", rank, k, now() - begin);
        outcome.is_good = false;
    }
    return outcome;
}

/* Returns on all ranks the value of the last rank. */
static int tell(int value)
{
    int32_t told = value;
    struct hvd_tensor tensor = call_tensor("told", HVD_INT32, NULL, 0, &told, &told);

    call_init();
    call_broadcast(&tensor, size - 1, 0);
    hvd_shutdown();
    return told;
}

/* The result of all ranks. */
struct result {
    bool is_good;
    bool is_over; /* no call failed, because there were fewer than k calls */
    /* the number of attempts that left objects on this rank */
    long stuck;
};

static void try_call(const char *function, long k, struct result *result)
{
    struct outcome outcome = attempt(function, k);
    int remains = left();

    if (remains != 0 && rank == size - 1 && !is_lasting) {
        fprintf(stderr, "# call %ld, %s, leaves %d things\n", k, outcome.failed, remains);
        outcome.is_good = false;
    }
    if (remains != 0) {
        result->stuck++;
        fake_gpu_live(&before);
        before.comms = 0;
    }
    result->is_over = tell(outcome.was_last) != 0;
    result->is_good = tell(outcome.is_good) != 0 && outcome.is_good;
}

static long try_all(struct result *result)
{
    long k = 0;

    while (!result->is_over && result->is_good && k < MOST_CALLS) {
        try_call(NULL, ++k, result);
    }
    return k;
}

static const struct subject {
    const char *name;
    const char *functions[12]; /* NULL behind the last */
} subjects[] = {
    {"pieces",
     {"cuMemHostAlloc", "cuMemAlloc", "cuMemcpyAsync", "cuStreamWaitEvent",
      "ncclReduceScatter", "ncclAllGather", "cuEventRecord", "cuEventCreate",
      "ncclGetUniqueId", "ncclCommInitRankConfig"}},
    {"direct", {"cuLaunchKernel", "ucp_am_send_nbx", "ucp_am_recv_data_nbx"}},
    {"converted",
     {"cuLaunchKernel", "ncclReduceScatter", "ncclAllGather", "cuMemcpyAsync"}},
    {"names",
     {"ncclBroadcast", "ncclReduce", "ncclSend", "ncclRecv", "ncclAllGather",
      "ncclAllReduce", "cuMemAlloc", "cuStreamWaitEvent"}},
    {"roots",
     {"ncclReduce", "ncclSend", "ncclRecv", "ncclGroupEnd", "cuMemcpyAsync",
      "cuMemHostAlloc", "cuStreamWaitEvent", "cuEventRecord", "cuEventCreate"}},
    {"end",
     {"cuMemFree", "cuMemFreeHost", "cuStreamDestroy", "cuEventDestroy", "cuModuleUnload",
      "cuDevicePrimaryCtxRelease", "cuCtxPopCurrent", "ncclCommDestroy",
      "ncclRedOpDestroy"}},
    {"measured", {"ncclAllReduce", "ncclGroupEnd", "cuLaunchKernel", "cuMemsetD8Async"}},
    {"windows",
     {"ncclMemAlloc", "ncclCommWindowRegister", "ncclCommWindowDeregister", "ncclMemFree",
      "cuMemAlloc", "cuEventCreate", "cuEventRecord", "ncclCommInitRankConfig"}},
    {"inboxes",
     {"cuMemAlloc", "cuMemsetD8Async", "cuIpcGetMemHandle", "cuIpcOpenMemHandle"}},
    {"lost", {"cuEventRecord", "cuEventQuery"}},
    {"unmeasured", {"cuMemAlloc", "cuStreamCreate", "cuEventCreate", "cuEventRecord"}},
};

static long try_functions(const struct subject *subject, struct result *result)
{
    const long most = may_succeed || is_lasting ? 5
                      : has_roots               ? 8
                                  : 3; /* the first call may have another purpose */
    long calls = 0;

    for (const char *const *functions = subject->functions; *functions != NULL;
         functions++) {
        result->is_over = false;
        for (long k = 1; k <= most && !result->is_over && result->is_good; k++) {
            try_call(*functions, k, result);
            calls++;
        }
    }
    return calls;
}

/* Returns NULL if there is no such subject. */
static const struct subject *find_subject(const char *name)
{
    for (size_t i = 0; name != NULL && i < sizeof(subjects) / sizeof(subjects[0]); i++) {
        if (strcmp(name, subjects[i].name) == 0) {
            return &subjects[i];
        }
    }
    return NULL;
}

static bool is_called(const struct subject *subject, const char *name)
{
    return subject != NULL && strcmp(subject->name, name) == 0;
}

int main(int argc, char **argv)
{
    const struct subject *subject = find_subject(argv[1]);
    struct result result = {.is_good = true};
    long calls;

    if ((argc > 1 && subject == NULL) || !gpu_open()) {
        return 1;
    }
    rank = call_init();
    size = hvd_size();
    hvd_shutdown();
    stream = gpu_stream();
    is_lasting = is_called(subject, "lost");
    may_succeed = is_called(subject, "unmeasured") || is_called(subject, "windows") ||
                  is_called(subject, "inboxes");
    pair_wire = is_called(subject, "converted") ? HVD_FLOAT16 : 0;
    /* in a measurement, the stand-in's ranks wait for each other 1600 times */
    limit_s =
        is_called(subject, "measured") || is_called(subject, "unmeasured") ? 60 : limit_s;
    has_pair =
        may_succeed || is_lasting || is_called(subject, "measured") || pair_wire != 0;
    rows = has_pair ? MEASURED_ROWS : is_called(subject, "direct") ? DIRECT_ROWS : ROWS;
    input = gpu_memory(BYTES);
    output = gpu_memory(BYTES);
    fake_gpu_live(&before);
    is_of_end = is_called(subject, "end");
    has_roots = is_called(subject, "roots");
    calls = subject != NULL ? try_functions(subject, &result) : try_all(&result);
    if (rank == 0) {
        tap_note("%ld calls", calls);
        tap_ok(result.is_good && calls > (subject != NULL ? 6 : 40),
               "errors name the failed call, no rank hangs, no object is left");
        tap_ok(result.stuck == 0,
               "no object is left on ranks that wait for the failed one");
        return tap_done();
    }
    return result.is_good ? 0 : 1;
}
