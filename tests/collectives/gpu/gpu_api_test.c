/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the interface for GPU tensors, apart from the numbers; runs as each rank of a job
 * of 2 or more. Rank 0 prints TAP; other ranks exit with 1 if something is wrong. */
#include <string.h>
#include <time.h>

#include "collectives/hvd.h"
#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/collectives/report.h"

enum {
    COUNT = 5000,
    BYTES = COUNT * (int)sizeof(float),
    ROUNDS = 30,
};

static int rank, size;
static const int64_t shape[] = {COUNT};
static void *stream;
static float *device_values;
/* the stream may read and write these until gpu_finish returns */
static float values[COUNT];
static float results[COUNT];

static void fill(float value)
{
    for (int i = 0; i < COUNT; i++) {
        values[i] = value + (float)(i % 7);
    }
}

static bool all_are(float value, float factor)
{
    for (int i = 0; i < COUNT; i++) {
        if (results[i] != value + factor * (float)(i % 7)) {
            fprintf(stderr, "# rank %d: element %d is %g, not %g\n", rank, i,
                    (double)results[i], (double)(value + factor * (float)(i % 7)));
            return false;
        }
    }
    return true;
}

static struct hvd_tensor on_device(const char *name)
{
    return gpu_tensor(name, HVD_FLOAT32, shape, 1, device_values, device_values, stream);
}

static struct hvd_request *start(const struct hvd_tensor *tensor, int set)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};

    if (hvd_allreduce_start(tensor, 1, HVD_SUM, 1, 1, set, &request, &err) != 0) {
        fprintf(stderr, "# rank %d: %s\n", rank, err.text);
        exit(1);
    }
    return request;
}

/* Uses the same name again and again, and frees requests long before the device is
 * done. */
static void test_stream_order(void)
{
    struct hvd_tensor tensor = on_device("again");
    struct hvd_error err = {0};
    float factor = 1;
    bool good = true;

    fill(1);
    gpu_copy(device_values, values, BYTES, stream);
    for (int i = 0; i < 4; i++) {
        struct hvd_request *request = start(&tensor, 0);

        good &= hvd_wait_on(request, stream, -1, &err) == 0;
        hvd_request_free(request);
        factor *= (float)size;
    }
    memset(results, 0, BYTES);
    gpu_copy(results, device_values, BYTES, stream);
    gpu_finish(stream);
    report(good && all_are(factor, factor),
           "reductions follow each other on a stream, without waiting in between");
}

static void test_host_waits(void)
{
    struct hvd_tensor tensor = on_device("host waits");
    struct hvd_request *request;
    struct hvd_error err = {0};
    void *other = gpu_stream();
    bool good = true;

    for (int i = 0; i < ROUNDS && good; i++) {
        fill((float)i);
        gpu_copy(device_values, values, BYTES, stream);
        request = start(&tensor, 0);
        good = hvd_wait(request, &err) == 0 && hvd_test(request, &err) == 0;
        hvd_request_free(request);
        memset(results, 0, BYTES);
        /* `other` does not wait for the collective */
        gpu_copy(results, device_values, BYTES, other);
        gpu_finish(other);
        good = good && all_are((float)(i * size), (float)size);
    }
    report(good, "hvd_wait returns only when the device is done");
}

static void test_polling(void)
{
    struct hvd_tensor tensor = on_device("polling");
    const struct timespec moment = {.tv_nsec = 1000000};
    struct hvd_request *request = start(&tensor, 0);
    int status, looks = 0;

    while ((status = hvd_test(request, NULL)) == HVD_INPROGRESS && looks++ < 5000) {
        nanosleep(&moment, NULL);
    }
    hvd_request_free(request);
    report(status == 0, "hvd_test alone brings a request to its end");
}

static void test_both_kinds(void)
{
    float here[COUNT] = {0};
    struct hvd_tensor host = call_tensor("mixed host", HVD_FLOAT32, shape, 1, here, here);
    struct hvd_tensor device = on_device("mixed device");
    struct hvd_request *requests[2];
    struct hvd_error err = {0};
    bool good = true;

    for (int i = 0; i < ROUNDS && good; i++) {
        fill(2);
        memcpy(here, values, sizeof(here));
        gpu_copy(device_values, values, BYTES, stream);
        requests[i % 2] = start(i % 2 == 0 ? &host : &device, 0);
        requests[1 - i % 2] = start(i % 2 == 0 ? &device : &host, 0);
        good = hvd_wait_on(requests[0], stream, -1, &err) == 0 &&
               hvd_wait_on(requests[1], stream, -1, &err) == 0;
        memset(results, 0, BYTES);
        gpu_copy(results, device_values, BYTES, stream);
        gpu_finish(stream);
        hvd_request_free(requests[0]);
        hvd_request_free(requests[1]);
        good = good && all_are((float)(2 * size), (float)size) &&
               memcmp(here, results, sizeof(here)) == 0;
    }
    report(good, "host and GPU tensors in one step are right");
}

static void test_mismatch(void)
{
    float here[COUNT] = {0};
    struct hvd_tensor host = call_tensor("where", HVD_FLOAT32, shape, 1, here, here);
    struct hvd_tensor device = on_device("where");
    struct hvd_request *request = start(rank == 0 ? &host : &device, 0);
    struct hvd_error err = {0};
    int status = hvd_wait_on(request, stream, -1, &err);

    hvd_request_free(request);
    report(
        status == HVD_ERR_MISMATCH &&
            (strstr(err.text, "Mismatched ALLREDUCE CPU/GPU device selection: One rank "
                              "specified device CPU, but another rank specified device "
                              "GPU.") != NULL ||
             strstr(err.text, "One rank specified device GPU, but another rank "
                              "specified device CPU.") != NULL),
        "a host tensor and a GPU tensor of one name fail with Horovod's text");
}

static bool refuses(const struct hvd_tensor *tensors, int count, const char *text)
{
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int status = hvd_allreduce_start(tensors, count, HVD_SUM, 1, 1, 0, &request, &err);

    if (status == 0 || strstr(err.text, text) == NULL) {
        fprintf(stderr, "# rank %d: %d %s\n", rank, status, err.text);
    }
    return status < 0 && strstr(err.text, text) != NULL;
}

static void test_refusals(void)
{
    struct hvd_tensor pair[2] = {on_device("a"), on_device("b")};

    pair[1].device = HVD_DEVICE_CPU;
    report(refuses(pair, 2, "tensors a and b of one call are on different devices"),
           "a call with tensors on host and GPU is refused");
    pair[1].device = gpu_number() + 1;
    report(refuses(pair, 2, "tensors a and b of one call are on different devices"),
           "a call with tensors on several GPUs is refused");
    pair[1] = on_device("b");
    pair[1].stream = gpu_stream();
    report(refuses(pair, 2, "tensors a and b of one call are on different streams"),
           "a call with tensors on several streams is refused");
    pair[0].device = gpu_number() + 1;
    report(refuses(pair, 1, "this rank has used GPU"),
           "a second GPU of a process is refused");
    pair[0].device = -2;
    report(refuses(pair, 1, "tensor a: there is no device -2"),
           "an invalid device number is refused");
}

/* Each rank is in two sets of two ranks. One rank of each set uses it first, the other
 * rank uses it second. */
static void test_sets(void)
{
    int sets[16] = {0};
    float *parts[2] = {gpu_memory(BYTES), gpu_memory(BYTES)};
    void *streams[2] = {gpu_stream(), gpu_stream()};
    bool good = true;

    for (int i = 0; i < size; i++) {
        int members[2] = {i, (i + 1) % size};

        sets[i] = call_set_add(members, 2);
    }
    for (int i = 0; i < ROUNDS && good; i++) {
        struct hvd_request *requests[2];
        float sums[2] = {-1, -1}, own = (float)(rank + i);

        for (int j = 0; j < 2; j++) {
            /* 0: the set of this rank and the next; 1: the set of the previous rank and
             * this one */
            int at = (i + j) % 2;
            int set = sets[(rank + size - at) % size];
            struct hvd_tensor tensor = on_device("in a set");

            tensor.ndim = 0;
            tensor.stream = streams[at];
            tensor.input = tensor.output = parts[at];
            gpu_copy(parts[at], &own, sizeof(own), streams[at]);
            requests[at] = start(&tensor, set);
        }
        for (int at = 0; at < 2; at++) {
            struct hvd_error err = {0};

            good &= hvd_wait_on(requests[at], streams[at], -1, &err) == 0;
            gpu_copy(&sums[at], parts[at], sizeof(sums[at]), streams[at]);
            gpu_finish(streams[at]);
            hvd_request_free(requests[at]);
        }
        good &= sums[0] == own + (float)((rank + 1) % size + i) &&
                sums[1] == own + (float)((rank + size - 1) % size + i);
    }
    report(good, "overlapping process sets work at the same time");
}

static void test_take(void)
{
    struct hvd_tensor tensor = on_device("gathered");
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    void *data;
    int64_t rows = -1;
    int before, taken;

    hvd_allgather_start(&tensor, 1, 0, &request, &err);
    before = hvd_request_rows(request, 1, &rows);
    hvd_wait(request, &err);
    taken = hvd_request_take(request, 0, &data, &rows);
    hvd_request_rows(request, 0, &rows);
    hvd_request_free(request);
    report(before == HVD_ERR_STATE && taken == HVD_ERR_STATE &&
               rows == (int64_t)COUNT * size,
           "results in device memory can be copied, but not taken");
}

/* Gathers `value` from all ranks and copies the result to `all` on the stream `other`,
 * which waits for nothing else. */
static bool gather(float value, char *all, void *other)
{
    struct hvd_tensor tensor = on_device("copied");
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    bool good;

    fill(value);
    gpu_copy(device_values, values, BYTES, stream);
    gpu_finish(stream);
    hvd_allgather_start(&tensor, 1, 0, &request, &err);
    for (int i = 0; i < 60; i++) {
        gpu_copy(all, values, sizeof(values[0]), other); /* delays the copy */
    }
    good = hvd_wait_on(request, stream, -1, &err) == 0 &&
           hvd_request_copy(request, 0, all, other, &err) == 0;
    hvd_request_free(request);
    return good;
}

/* The second gather may reuse the memory of the first result only after that was
 * copied. */
static void test_copy(void)
{
    char *all[2] = {gpu_memory((size_t)size * BYTES), gpu_memory((size_t)size * BYTES)};
    void *other = gpu_stream();
    bool good = true;

    for (int i = 0; i < ROUNDS; i++) { /* no early end: the other ranks continue */
        good &= gather((float)i, all[0], other);
        good &= gather((float)i + 50, all[1], other);
        for (int j = 0; j < 2; j++) {
            memset(results, 0, BYTES);
            gpu_copy(results, all[j] + (size_t)(size - 1) * BYTES, BYTES, other);
            gpu_finish(other);
            good = good && all_are((float)(i + 50 * j), 1);
        }
    }
    report(good, "a gathered result is copied when it is complete, and kept until then");
}

/* When hvd_gpu_synchronize returns, everything launched before has ended. */
static void test_synchronize(void)
{
    bool good = hvd_gpu_synchronize(0, NULL) == 0;

    for (int i = 0; i < ROUNDS; i++) {
        struct hvd_tensor tensor = on_device("landed");
        struct hvd_request *request = NULL;
        struct hvd_error err = {0};

        hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err);
        good &= hvd_wait_on(request, stream, -1, &err) == 0 &&
                hvd_gpu_synchronize(-1, &err) == 0 && hvd_wait_for(request, 0, &err) == 0;
        hvd_request_free(request);
    }
    report(good, "hvd_gpu_synchronize returns when all launched work has ended");
}

/* Uses a tensor of cuda:1 while cuda:0 is the current device. This must be the first
 * collective, in which hvd opens the GPU. */
static void test_elsewhere(void)
{
    struct hvd_tensor tensor = on_device("elsewhere");
    struct hvd_request *request = NULL;
    char *all = gpu_memory((size_t)size * BYTES);
    struct hvd_error err = {0};
    bool good, stayed;

    fill((float)rank);
    gpu_copy(device_values, values, BYTES, stream);
    if (!gpu_go_elsewhere()) {
        return;
    }
    good = hvd_allgather_start(&tensor, 1, 0, &request, &err) == 0 &&
           hvd_wait_on(request, stream, -1, &err) == 0 &&
           hvd_request_copy(request, 0, all, stream, &err) == 0;
    hvd_request_free(request);
    request = start(&tensor, 0);
    good = good && hvd_wait_on(request, stream, -1, &err) == 0;
    hvd_request_free(request);
    stayed = gpu_come_back();
    gpu_copy(results, all + (size_t)(size - 1) * BYTES, BYTES, stream);
    gpu_finish(stream);
    good = good && all_are((float)(size - 1), 1);
    gpu_copy(results, device_values, BYTES, stream);
    gpu_finish(stream);
    report(good && stayed && all_are((float)(size * (size - 1)) / 2, (float)size),
           "the GPU of a tensor need not be the thread's current one");
    if (!good) {
        fprintf(stderr, "# rank %d: %s\n", rank, err.text);
    }
}

int main(void)
{
    bool good;

    if (!gpu_open()) {
        return 1;
    }
    rank = report_init();
    size = hvd_size();
    stream = gpu_stream();
    device_values = gpu_memory(BYTES);
    test_elsewhere();
    test_stream_order();
    test_host_waits();
    test_polling();
    test_both_kinds();
    test_mismatch();
    test_refusals();
    test_take();
    test_copy();
    test_synchronize();
    if (size > 2) {
        test_sets();
    }
    hvd_shutdown();
    good = hvd_gpu_synchronize(-1, NULL) == 0;
    report_alone(good, "hvd_gpu_synchronize returns at once if there is no job");
    return report_done();
}
