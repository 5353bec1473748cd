/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the calls of CUDA and NCCL for a training step on the stand-in: an allreduce of
 * each of ResNet-50's 161 gradients, started one after the other, as backward does; and
 * for an allreduce in chunks. Runs as each rank of a job. The gradients come from two
 * streams in turn. Rank 0 prints TAP and a table; other ranks exit with 1 if something is
 * wrong.
 *
 *   gpu_step_calls_test [DIVISOR]   divides the channels of all layers; default 8 */
#include <stdlib.h>
#include <string.h>

#include "collectives/hvd.h"
#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/collectives/report.h"
#include "tests/fake_gpu/fake_cuda.h"

enum {
    GRADIENTS = 161,
    CHECKED_STEPS = 4, /* the gradients change from step to step, and are compared */
    STEPS = 5, /* counted */
    STREAMS = 2,
    WINDOW = 4, /* chunks in progress at a time */
};

static const char *const functions[] = {
    FAKE_NCCL_LAUNCH, FAKE_NCCL_THREAD, "cuLaunchKernel", "cuMemcpyAsync",
    "cuEventCreate",  "cuEventDestroy", "cuEventRecord",  "cuStreamWaitEvent",
};

enum {
    FUNCTIONS = sizeof(functions) / sizeof(functions[0]),
};

struct calls {
    long of[FUNCTIONS];
};

static int64_t counts[GRADIENTS];
static float *gradients[GRADIENTS];
static int gradient_count;
static void *streams[STREAMS];
static float *values; /* pinned, as many as the largest gradient has */

/* --- ResNet-50 --- */

static void add_gradient(int64_t count)
{
    counts[gradient_count++] = count > 0 ? count : 1;
}

/* A convolution without bias, and its normalization. */
static void add_convolution(int64_t inputs, int64_t outputs, int64_t window)
{
    add_gradient(inputs * outputs * window);
    add_gradient(outputs);
    add_gradient(outputs);
}

static void add_stage(int64_t inputs, int64_t width, int blocks)
{
    for (int i = 0; i < blocks; i++) {
        add_convolution(i == 0 ? inputs : 4 * width, width, 1);
        add_convolution(width, width, 9);
        add_convolution(width, 4 * width, 1);
        if (i == 0) {
            add_convolution(inputs, 4 * width, 1);
        }
    }
}

static int64_t most_elements(void)
{
    int64_t most = 0;

    for (int i = 0; i < GRADIENTS; i++) {
        most = counts[i] > most ? counts[i] : most;
    }
    return most;
}

static void make_gradients(int64_t divisor)
{
    const int64_t width = 64 / divisor;

    add_convolution(3, width, 49);
    add_stage(width, width, 3);
    add_stage(4 * width, 2 * width, 4);
    add_stage(8 * width, 4 * width, 6);
    add_stage(16 * width, 8 * width, 3);
    add_gradient(32 * width * 1000);
    add_gradient(1000);
    for (int i = 0; i < gradient_count; i++) {
        gradients[i] = gpu_memory((size_t)counts[i] * sizeof(float));
    }
    values = gpu_host_memory((size_t)most_elements() * sizeof(float));
}

/* --- a step --- */

static void *stream_of(int gradient)
{
    return streams[gradient % STREAMS];
}

static void finish_streams(void)
{
    for (int i = 0; i < STREAMS; i++) {
        gpu_finish(streams[i]);
    }
}

static bool start_gradient(int i, struct hvd_request **request)
{
    static char names[GRADIENTS][16];
    struct hvd_tensor tensor;
    struct hvd_error err = {0};

    snprintf(names[i], sizeof(names[i]), "gradient.%d", i);
    tensor = gpu_tensor(names[i], HVD_FLOAT32, &counts[i], 1, gradients[i], gradients[i],
                        stream_of(i));
    if (hvd_allreduce_start(&tensor, 1, HVD_AVERAGE, 1, 1, 0, request, &err) != 0) {
        fprintf(stderr, "# %s: %s\n", names[i], err.text);
        return false;
    }
    return true;
}

/* Compares the ends of a gradient, once its stream has the result. */
static bool is_average(int i, int step)
{
    float first, last;

    gpu_copy(&first, gradients[i], sizeof(first), stream_of(i));
    gpu_copy(&last, gradients[i] + counts[i] - 1, sizeof(last), stream_of(i));
    gpu_finish(stream_of(i));
    if (first != last || first != (float)step + (float)(hvd_size() - 1) / 2) {
        fprintf(stderr, "# gradient %d, step %d: %g, %g\n", i, step, (double)first,
                (double)last);
        return false;
    }
    return true;
}

/* The copy that makes a gradient may be late: its stream is a thread with delays. */
static void make_gradient(int i)
{
    gpu_copy(gradients[i], values, (size_t)counts[i] * sizeof(float), stream_of(i));
}

static bool run_step(int step, bool is_checked)
{
    static struct hvd_request *requests[GRADIENTS];
    struct hvd_error err = {0};
    bool good = true;

    for (int64_t i = 0; is_checked && i < most_elements(); i++) {
        values[i] = (float)(step + report_rank);
    }
    for (int i = GRADIENTS - 1; i >= 0 && good; i--) {
        if (is_checked) {
            make_gradient(i);
        }
        good = start_gradient(i, &requests[i]);
    }
    for (int i = GRADIENTS - 1; i >= 0 && good; i--) {
        good = hvd_wait_on(requests[i], stream_of(i), -1, &err) == 0 &&
               (!is_checked || is_average(i, step));
        hvd_request_free(requests[i]);
    }
    finish_streams();
    return good;
}

/* --- an allreduce in chunks --- */

static bool sum_tensor(const struct hvd_tensor *tensor)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    bool good = hvd_allreduce_start(tensor, 1, HVD_SUM, 1, 1, 0, &request, &err) == 0 &&
                hvd_wait_on(request, streams[0], -1, &err) == 0;

    if (!good) {
        fprintf(stderr, "# %s: %s\n", tensor->name, err.text);
    }
    hvd_request_free(request);
    gpu_finish(streams[0]);
    return good;
}

/* Counts the launches for two small tensors that are reduced together. One kernel, if it
 * is wanted, does all that otherwise needs a kernel that packs, NCCL, a kernel that
 * unpacks, and one that checks for an abort. */
static void test_pair(void)
{
    static const int64_t count[] = {1000};
    const char *bytes = getenv("HVD_GPU_ONE_KERNEL");
    bool is_one = bytes != NULL && atoi(bytes) > 0, good = true;
    float *memory = gpu_memory(2 * (size_t)count[0] * sizeof(float));
    struct hvd_tensor pair[] = {
        gpu_tensor("one", HVD_FLOAT32, count, 1, memory, memory, streams[0]),
        gpu_tensor("two", HVD_FLOAT32, count, 1, memory + count[0], memory + count[0],
                   streams[0])};
    long launches = 0, kernels = 0;

    for (int i = 0; i < 2 && good; i++) { /* the first one may open the inboxes */
        struct hvd_request *request = NULL;
        struct hvd_error err = {0};

        launches = -fake_gpu_calls(FAKE_NCCL_LAUNCH);
        kernels = -fake_gpu_launches();
        good = hvd_allreduce_start(pair, 2, HVD_AVERAGE, 1, 1, 0, &request, &err) == 0 &&
               hvd_wait_on(request, streams[0], -1, &err) == 0;
        hvd_request_free(request);
        gpu_finish(streams[0]);
        launches += fake_gpu_calls(FAKE_NCCL_LAUNCH);
        kernels += fake_gpu_launches();
    }
    if (report_rank == 0) {
        printf("# two small tensors: %ld launches of NCCL, %ld kernels\n", launches,
               kernels);
    }
    report(good && launches == (is_one ? 0 : 1) && kernels == (is_one ? 1 : 3),
           "two small tensors are reduced by %s",
           is_one ? "one kernel" : "NCCL and three kernels");
}

/* Compares the launches of NCCL with the chunks of one large tensor: each of them is
 * copied to the host and back. */
static void test_chunks(void)
{
    const int64_t count = 2 << 20;
    float *tensor = gpu_memory((size_t)count * sizeof(float));
    struct hvd_tensor large =
        gpu_tensor("large", HVD_FLOAT32, &count, 1, tensor, tensor, streams[0]);
    long copies = 0, launches = 0, groups = 0;
    bool good = true;

    for (int i = 0; i < 2 && good; i++) { /* the first one connects */
        copies = -fake_gpu_calls("cuMemcpyAsync");
        launches = -fake_gpu_calls(FAKE_NCCL_LAUNCH);
        groups = -fake_gpu_calls("ncclGroupEnd");
        good = sum_tensor(&large);
        copies += fake_gpu_calls("cuMemcpyAsync");
        launches += fake_gpu_calls(FAKE_NCCL_LAUNCH);
        groups += fake_gpu_calls("ncclGroupEnd");
    }
    if (report_rank == 0) {
        printf("# %ld chunks: %ld launches of NCCL, %ld of them for two chunks\n",
               copies / 2, launches, groups);
    }
    report(good && copies / 2 >= WINDOW && launches == copies / 2 + 3,
           "NCCL is launched once for each chunk, and three times more");
}

static struct calls count_calls(void)
{
    struct calls calls;

    for (int i = 0; i < FUNCTIONS; i++) {
        calls.of[i] = fake_gpu_calls(functions[i]);
    }
    return calls;
}

static long calls_of(const struct calls *calls, const char *function)
{
    int i = 0;

    while (strcmp(functions[i], function) != 0) {
        i++;
    }
    return calls->of[i];
}

static void print_table(const struct calls *calls)
{
    for (int i = 0; i < FUNCTIONS && report_rank == 0; i++) {
        printf("# %-24s %7.1f\n", functions[i], (double)calls->of[i] / STEPS);
    }
}

int main(int argc, char **argv)
{
    /* the driver does not tell streams apart, so hvd follows each event */
    bool has_ids = getenv("FAKE_GPU_NO_IDS") == NULL;
    struct calls before, calls;
    bool good = true;

    if (!gpu_open()) {
        return 1;
    }
    report_init();
    for (int i = 0; i < STREAMS; i++) {
        streams[i] = gpu_stream();
    }
    make_gradients(argc > 1 ? atoi(argv[1]) : 8);
    for (int i = 0; i < CHECKED_STEPS && good; i++) {
        good = run_step(i, true);
    }
    report(good && gradient_count == GRADIENTS,
           "the gradients of ResNet-50 are averaged");
    before = count_calls();
    for (int i = 0; i < STEPS && good; i++) {
        good = run_step(i, false);
    }
    calls = count_calls();
    for (int i = 0; i < FUNCTIONS; i++) {
        calls.of[i] -= before.of[i];
    }
    print_table(&calls);
    report(good && fake_gpu_calls("cuEventCreate") <
                       (long)GRADIENTS * (CHECKED_STEPS + STEPS) / 2,
           "events are used again");
    if (getenv("HVD_GPU_ALLREDUCE") != NULL) { /* hierarchical, in chunks */
        test_chunks();
    } else {
        test_pair();
    }
    report(!has_ids || calls_of(&calls, "cuStreamWaitEvent") < (long)GRADIENTS * STEPS,
           "streams wait for fewer events than there are gradients");
    hvd_shutdown();
    return report_done();
}
