/* SPDX-License-Identifier: Apache-2.0 */
/* Runs TensorFlow's GPU operations in each rank of a job. Stand-ins replace CUDA, NCCL
 * and TensorFlow.
 *
 * usage: gpu_ops_test LIBRARY [lost]
 *
 *     LIBRARY  hvd_tensorflow.so
 *     lost     the library cannot find the device from a kernel's context
 *
 * As in TensorFlow, the device's stream computes the inputs late, and still uses the
 * memory of an output when the kernel gets it. */
#include <dlfcn.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectives/hvd.h"
#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/collectives/report.h"
#include "tests/fake_gpu/fake_cuda.h"
#include "tests/python/native/tensorflow/fake_tensorflow.h"

enum {
    COUNT = 5000,
    BYTES = COUNT * (int)sizeof(float),
    MOST_RANKS = 8,
    MOST_TENSORS = 32,
    PATIENCE_S = 60,
    LATE = 60, /* copies on the stream that delay an input by some milliseconds */
};

static int rank, size;
static void *stream;
static float *scratch; /* device memory that copies use to delay the stream */
static bool is_lost;

/* --- memory --- */

/* Returns device memory for the values of all ranks. The stream writes the first COUNT
 * values, late. */
static float *late_values(float value)
{
    static float values[MOST_TENSORS][COUNT]; /* source of the copies on the stream */
    static int used;
    float *memory = gpu_memory(MOST_RANKS * BYTES), *own = values[used++];

    for (int i = 0; i < COUNT; i++) {
        own[i] = value;
    }
    for (int i = 0; i < LATE; i++) {
        gpu_copy(scratch, scratch, BYTES, stream);
    }
    gpu_copy(memory, own, BYTES, stream);
    return memory;
}

/* Whether the memory has `count` equal values when the stream has finished its work. */
static bool holds(const void *memory, int count, float value)
{
    static float got[MOST_RANKS * COUNT];
    bool is_good = true;

    gpu_copy(got, memory, (size_t)count * sizeof(got[0]), stream);
    gpu_finish(stream);
    for (int i = 0; i < count && is_good; i++) {
        is_good = got[i] == value;
    }
    if (!is_good) {
        fprintf(stderr,
                "# rank %d: the first element is %g, the last %g; all must be %g\n", rank,
                (double)got[0], (double)got[count - 1], (double)value);
    }
    return is_good;
}

static struct TF_Tensor *matrix(int64_t rows, int64_t columns, void *memory)
{
    const int64_t dims[] = {rows, columns};

    return fake_tensor(TF_FLOAT, dims, 2, memory);
}

static struct TF_Tensor *late_tensor(float value)
{
    return matrix(COUNT / 10, 10, late_values(value));
}

/* --- runs --- */

static struct fake_run reduction(const char *name, float value)
{
    return (struct fake_run){.op = "HorovodAllreduce",
                             .device = "GPU",
                             .name = name,
                             .reduce_op = HVD_SUM,
                             .input_count = 1,
                             .inputs = {late_tensor(value)}};
}

static bool ended_well(struct fake_run *run)
{
    bool is_good = fake_run_wait(run) && run->code == TF_OK;

    if (!is_good) {
        fprintf(stderr, "# rank %d: %s %s: %s\n", rank, run->op, run->name,
                atomic_load(&run->ends) == 0 ? "has not ended" : run->text);
    }
    return is_good;
}

static bool run_well(struct fake_run *run)
{
    return fake_run_start(run) && ended_well(run);
}

static float sum_of_ranks(void)
{
    return (float)(size * (size - 1) / 2);
}

/* --- promises --- */

static void test_kernels(bool has_gpus)
{
    static const char *const with_tensors[] = {"HorovodAllreduce", "HorovodReducescatter",
                                               "HorovodAllgather", "HorovodBroadcast",
                                               "HorovodAlltoall"};
    bool is_good = true;

    for (int i = 0; i < 5; i++) {
        is_good &= fake_has_kernel(with_tensors[i], "GPU") == has_gpus;
        is_good &= fake_has_kernel(with_tensors[i], "CPU");
    }
    is_good &= !fake_has_kernel("HorovodJoin", "GPU") &&
               !fake_has_kernel("HorovodRank", "GPU") &&
               fake_has_kernel("HorovodRank", "CPU");
    report(is_good, has_gpus ? "operations with tensors have kernels for GPUs"
                             : "only kernels for CPUs are registered");
    if (has_gpus) {
        report(fake_is_on_host("HorovodAlltoall", "GPU", "splits") &&
                   fake_is_on_host("HorovodAlltoall", "GPU", "received_splits") &&
                   !fake_is_on_host("HorovodAlltoall", "GPU", "tensor"),
               "the row counts of an alltoall stay on the host");
    }
}

static void test_allreduce(void)
{
    struct fake_run in_place = reduction("in place", (float)rank);
    struct fake_run elsewhere = reduction("elsewhere", (float)rank);
    void *input = fake_data(in_place.inputs[0]);
    bool is_good = run_well(&in_place);

    report(is_good && fake_data(in_place.outputs[0]) == input &&
               holds(input, COUNT, sum_of_ranks()),
           "an allreduce begins after the stream has computed its input");
    fake_next_output(late_values(-1));
    input = fake_data(elsewhere.inputs[0]);
    is_good = run_well(&elsewhere);
    report(is_good && fake_data(elsewhere.outputs[0]) != input &&
               holds(fake_data(elsewhere.outputs[0]), COUNT, sum_of_ranks()) &&
               holds(input, COUNT, (float)rank),
           "its output is written after the stream has finished with that memory");
    fake_run_free(&in_place);
    fake_run_free(&elsewhere);
}

struct gate {
    sem_t opened;
    atomic_bool is_late; /* whether PATIENCE_S passed before the gate opened */
};

static void wait_for_test(void *argument)
{
    struct gate *gate = argument;
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    atomic_store(&gate->is_late, sem_timedwait(&gate->opened, &until) != 0);
}

/* Checks that a kernel ends while the stream is still blocked. `blocks`: the value of the
 * operation's attribute of this name. */
static void test_no_thread_waits(bool blocks)
{
    struct fake_run run = reduction(blocks ? "blocks" : "in a graph", (float)rank);
    struct gate gate = {.is_late = false};
    bool is_good;

    sem_init(&gate.opened, 0, 0);
    fake_gpu_enqueue(stream, wait_for_test, &gate);
    run.blocks = blocks;
    is_good = run_well(&run) && !atomic_load(&gate.is_late);
    sem_post(&gate.opened);
    report(is_good && holds(fake_data(run.outputs[0]), COUNT, sum_of_ranks()),
           blocks ? "a blocking kernel waits for the launch, not for the device"
                  : "a kernel ends when the collective is launched, and later work on "
                    "the stream waits");
    fake_run_free(&run);
}

static void test_group(void)
{
    struct fake_run run = reduction("group", 1);
    bool is_good;

    run.inputs[1] = late_tensor((float)rank);
    run.input_count = 2;
    is_good = run_well(&run);
    report(is_good && holds(fake_data(run.outputs[0]), COUNT, (float)size) &&
               holds(fake_data(run.outputs[1]), COUNT, sum_of_ranks()),
           "a group of tensors is reduced");
    fake_run_free(&run);
}

static void test_broadcast_and_scatter(void)
{
    struct fake_run broadcast = reduction("broadcast", (float)(rank + 1));
    struct fake_run scatter = reduction("scatter", (float)rank);
    bool is_good;
    int64_t rows = COUNT / 10;

    broadcast.op = "HorovodBroadcast";
    broadcast.root_rank = 1;
    is_good = run_well(&broadcast);
    report(is_good && holds(fake_data(broadcast.outputs[0]), COUNT, 2),
           "a broadcast gives the root's tensor");
    scatter.op = "HorovodReducescatter";
    is_good = run_well(&scatter);
    rows = rows / size + (rank < rows % size ? 1 : 0);
    report(is_good && fake_rows(scatter.outputs[0]) == rows &&
               holds(fake_data(scatter.outputs[0]), (int)rows * 10, sum_of_ranks()),
           "a reducescatter gives this rank's rows of the sum");
    fake_run_free(&broadcast);
    fake_run_free(&scatter);
}

static void test_allgather(void)
{
    struct fake_run run = reduction("gathered", 7);
    int64_t rows = 0;
    bool is_good;

    for (int i = 0; i < size; i++) {
        rows += i + 1;
    }
    run.op = "HorovodAllgather";
    run.inputs[1] = matrix(rank + 1, 3, late_values(8));
    run.input_count = 2;
    fake_next_output(late_values(-1));
    is_good = run_well(&run);
    report(is_good && fake_rows(run.outputs[0]) == size * COUNT / 10 &&
               fake_rows(run.outputs[1]) == rows &&
               holds(fake_data(run.outputs[0]), size * COUNT, 7) &&
               holds(fake_data(run.outputs[1]), (int)rows * 3, 8),
           "the output of an allgather is TensorFlow's memory on the device");
    fake_run_free(&run);
}

static void test_alltoall(void)
{
    struct fake_run run = reduction("exchanged", (float)5);
    int32_t *splits = calloc((size_t)size, sizeof(splits[0]));
    const int64_t dims[] = {size};
    bool is_good;

    for (int i = 0; i < size; i++) {
        splits[i] = i + 1;
    }
    TF_DeleteTensor(run.inputs[0]);
    run.op = "HorovodAlltoall";
    run.inputs[0] = matrix((int64_t)size * (size + 1) / 2, 4, late_values(5));
    run.inputs[1] = fake_tensor(TF_INT32, dims, 1, splits);
    run.input_count = 2;
    is_good = run_well(&run) && fake_rows(run.outputs[0]) == size * (rank + 1) &&
              holds(fake_data(run.outputs[0]), size * (rank + 1) * 4, 5);
    for (int i = 0; is_good && i < size; i++) {
        is_good = ((int32_t *)fake_data(run.outputs[1]))[i] == rank + 1;
    }
    report(is_good, "an alltoall moves the rows, and its row counts are on the host");
    fake_run_free(&run);
    free(splits);
}

/* Each rank starts the collectives in a different order, and waits for the first only
 * when all have started. */
static void test_orders(void)
{
    enum {
        RUNS = 6
    };
    static const char *const names[RUNS] = {"a", "b", "c", "d", "e", "f"};
    struct fake_run runs[RUNS];
    bool is_good = true;

    for (int i = 0; i < RUNS; i++) {
        runs[i] = reduction(names[i], (float)(i + rank));
    }
    for (int i = 0; i < RUNS; i++) {
        is_good &= fake_run_start(&runs[(i + 2 * rank) % RUNS]);
    }
    for (int i = 0; i < RUNS; i++) {
        is_good &= ended_well(&runs[i]) && holds(fake_data(runs[i].outputs[0]), COUNT,
                                                 (float)(i * size) + sum_of_ranks());
        fake_run_free(&runs[i]);
    }
    report(is_good, "ranks may start their collectives in different orders");
}

static void test_failures(void)
{
    struct fake_run wrong = reduction("shapes", 1), right = reduction("shapes", 1);
    struct fake_run early = reduction("no context", 1);
    bool is_good;

    TF_DeleteTensor(wrong.inputs[0]);
    wrong.inputs[0] = matrix(10, rank + 1, late_values(1));
    is_good = fake_run_start(&wrong) && fake_run_wait(&wrong);
    report(is_good && wrong.code == TF_FAILED_PRECONDITION &&
               strstr(wrong.text, "shape") != NULL,
           "a collective with different shapes fails on all ranks");
    report(run_well(&right) && holds(fake_data(right.outputs[0]), COUNT, (float)size),
           "the collective after it succeeds");
    fake_gpu_fail_in("cuCtxGetDevice", 1);
    is_good = fake_run_start(&early) && fake_run_wait(&early);
    report(is_good && early.code == TF_UNIMPLEMENTED &&
               strstr(early.text, "tf.device('CPU:0')") != NULL,
           "a GPU without a CUDA context is rejected, with the remedy");
    fake_run_free(&wrong);
    fake_run_free(&right);
    fake_run_free(&early);
}

static void test_host(void)
{
    float values[] = {(float)rank, 1};
    struct fake_run run = reduction("on the host", 1);

    TF_DeleteTensor(run.inputs[0]);
    run.device = "CPU";
    run.inputs[0] = matrix(1, 2, values);
    report(run_well(&run) && values[0] == sum_of_ranks() && values[1] == (float)size,
           "tensors on the host are reduced in place");
    fake_run_free(&run);
}

/* --- nodes that run again --- */

static int restarts;

/* Counts the restarted requests. The test exports this function, so the library calls it
 * instead of libhvd's. */
HVD_EXPORT int hvd_request_start(struct hvd_request *request,
                                 const struct hvd_tensor *tensors, struct hvd_error *err)
{
    int (*start)(struct hvd_request *, const struct hvd_tensor *, struct hvd_error *);
    void *address = dlsym(RTLD_NEXT, "hvd_request_start");
    int status;

    memcpy(&start, &address, sizeof(start));
    status = start(request, tensors, err);
    restarts += status == 0 ? 1 : 0;
    return status;
}

enum {
    MOST_ROWS = 3,
};

/* Runs the node on new host memory. Returns whether the result is the sum. */
static bool run_on_host(void **kernel, const char *op, int dtype, int64_t rows)
{
    struct {
        float values[MOST_ROWS * MOST_RANKS];
    } *memory = calloc(1, sizeof(*memory)); /* new memory in each run */
    int64_t whole = strcmp(op, "HorovodReducescatter") == 0 ? rows * size : rows;
    struct fake_run run = {.op = op,
                           .device = "CPU",
                           .name = "again",
                           .kernel = kernel,
                           .reduce_op = HVD_SUM,
                           .input_count = 1};
    const int64_t dims[] = {whole};
    bool is_good;

    for (int64_t i = 0; i < whole; i++) {
        if (dtype == TF_FLOAT) {
            memory->values[i] = (float)(rank + i);
        } else {
            ((int32_t *)memory->values)[i] = rank + (int)i;
        }
    }
    run.inputs[0] = fake_tensor(dtype, dims, 1, memory->values);
    is_good = run_well(&run) && fake_rows(run.outputs[0]) == rows;
    for (int64_t i = 0; is_good && i < rows; i++) {
        const void *result = fake_data(run.outputs[0]);
        int first = whole > rows ? rank * (int)rows : 0;
        float expected = sum_of_ranks() + (float)(size * (first + (int)i));

        is_good = (dtype == TF_FLOAT ? ((const float *)result)[i]
                                     : (float)((const int32_t *)result)[i]) == expected;
    }
    fake_run_free(&run);
    free(memory);
    return is_good;
}

static void delete_kernel(void **kernel, const char *op)
{
    struct fake_run run = {.op = op, .device = "CPU", .kernel = kernel};

    fake_run_delete_kernel(&run);
}

static void test_restarts(const char *op, const char *promise)
{
    void *kernel = NULL;
    bool is_good = true;

    restarts = 0;
    for (int i = 0; i < 5; i++) {
        is_good &= run_on_host(&kernel, op, TF_FLOAT, 3);
    }
    report(is_good && restarts == 3, "%s", promise);
    delete_kernel(&kernel, op);
}

static void test_other_tensors(void)
{
    static const struct {
        int dtype;
        int rows;
        int restarts; /* the expected number after this run */
    } runs[] = {{TF_FLOAT, 3, 0}, {TF_FLOAT, 3, 0}, {TF_FLOAT, 2, 0}, {TF_FLOAT, 2, 1},
                {TF_INT32, 2, 1}, {TF_INT32, 2, 2}, {TF_FLOAT, 3, 2}};
    void *kernel = NULL;
    bool is_good = true;

    restarts = 0;
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        is_good &= run_on_host(&kernel, "HorovodAllreduce", runs[i].dtype, runs[i].rows);
        is_good &= restarts == runs[i].restarts;
    }
    report(is_good, "a node makes a new request when its tensors have another shape or "
                    "dtype");
    delete_kernel(&kernel, "HorovodAllreduce");
}

static void test_next_job(void)
{
    void *kernel = NULL;
    bool is_good = true;

    restarts = 0;
    for (int job = 0; job < 2; job++) {
        for (int i = 0; i < 3; i++) {
            is_good &= run_on_host(&kernel, "HorovodAllreduce", TF_FLOAT, 3);
        }
        hvd_shutdown();
        is_good &= hvd_init(NULL) == 0;
    }
    report(is_good && restarts == 1 + 2,
           "a node makes a new request in the next job of the process");
    delete_kernel(&kernel, "HorovodAllreduce");
}

static void test_all(void)
{
    bool is_async = fake_has_async_kernels();

    test_allreduce();
    if (!is_lost) {
        test_no_thread_waits(true);
        test_no_thread_waits(false);
    }
    test_group();
    test_broadcast_and_scatter();
    test_allgather();
    test_alltoall();
    if (is_async) {
        test_orders();
    }
    test_failures();
}

int main(int count, char **arguments)
{
    bool has_gpus = FAKE_TENSORFLOW >= FAKE_2_12;

    if (!gpu_open()) {
        return 1;
    }
    is_lost = count > 2 && strcmp(arguments[2], "lost") == 0;
    stream = gpu_stream();
    scratch = gpu_memory(BYTES);
    fake_use_stream(stream);
    if (is_lost) {
        fake_lose_device();
    }
    if (count < 2 || dlopen(arguments[1], RTLD_NOW) == NULL) {
        fprintf(stderr, "# %s\n", count < 2 ? "which library?" : dlerror());
        return 1;
    }
    rank = report_init();
    size = hvd_size();
    test_kernels(has_gpus);
    test_host();
    test_restarts(
        "HorovodAllreduce",
        "from its third run on, the node of an allreduce starts its request again, on "
        "the memory of the run");
    test_restarts(
        "HorovodReducescatter",
        "from its third run on, the node of a reducescatter starts its request again");
    test_other_tensors();
    test_next_job();
    if (has_gpus) {
        test_all();
    }
    hvd_shutdown();
    return report_done();
}
