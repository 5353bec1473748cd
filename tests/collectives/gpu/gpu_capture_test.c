/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA graphs. While one thread of each rank captures a graph in global mode, another
 * thread runs collectives. They work, even the first one, which allocates memory and
 * connects, and the capture stays valid. hvd refuses a stream that is being captured.
 * Runs as each rank of a job on the stand-in. Rank 0 prints TAP; other ranks exit with 1
 * on failure. */
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "collectives/hvd.h"
#include "tests/collectives/gpu/gpu_memory.h"
#include "tests/collectives/report.h"

/* Functions of the driver. */
int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamEndCapture(void *stream, void **graph);

enum {
    GLOBAL = 0, /* CUstreamCaptureMode */
    THREAD_LOCAL = 1,
    COUNT = 20000,
    MOST_RANKS = 16,
    BYTES = COUNT * (int)sizeof(float),
};

static int rank, size;
static void *stream;
static float *memory, *gathered; /* on the device */
static float values[COUNT * MOST_RANKS];

/* --- another thread, which captures --- */

static sem_t has_begun, may_end;
static int begun, ended;

static void *capture(void *other_stream)
{
    void *graph;

    begun = cuStreamBeginCapture_v2(other_stream, GLOBAL);
    sem_post(&has_begun);
    sem_wait(&may_end);
    ended = cuStreamEndCapture(other_stream, &graph);
    return NULL;
}

static pthread_t begin_capture(void *other_stream)
{
    pthread_t thread;

    sem_init(&has_begun, 0, 0);
    sem_init(&may_end, 0, 0);
    begun = pthread_create(&thread, NULL, capture, other_stream);
    if (begun != 0) {
        fprintf(stderr, "# no thread\n");
        exit(1);
    }
    sem_wait(&has_begun);
    return thread;
}

/* Returns whether the capture stayed valid to the end. */
static bool end_capture(pthread_t thread)
{
    sem_post(&may_end);
    pthread_join(thread, NULL);
    return begun == 0 && ended == 0;
}

/* --- collectives of this thread meanwhile --- */

static float value_of(int of, int64_t i)
{
    return (float)((of + 1) * 10 + (int)(i % 7));
}

static struct hvd_tensor tensor_of(enum hvd_dtype dtype, void *output)
{
    static const int64_t shape[] = {COUNT};

    return gpu_tensor("t", dtype, shape, 1, memory, output, stream);
}

static bool adds(enum hvd_dtype dtype)
{
    struct hvd_tensor tensor = tensor_of(dtype, memory);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int status = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err);

    if (status == 0) {
        status = hvd_wait_on(request, stream, -1, &err);
    }
    if (status == 0) {
        status = hvd_wait(request, &err);
    }
    if (status != 0) {
        fprintf(stderr, "# rank %d: %s\n", rank, err.text);
    }
    hvd_request_free(request);
    return status == 0;
}

static bool gathers(void)
{
    struct hvd_tensor tensor = tensor_of(HVD_FLOAT32, NULL);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0};
    int status = hvd_allgather_start(&tensor, 1, 0, &request, &err);

    if (status == 0) {
        status = hvd_wait_on(request, stream, -1, &err);
    }
    if (status == 0) {
        status = hvd_request_copy(request, 0, gathered, stream, &err);
    }
    if (status != 0) {
        fprintf(stderr, "# rank %d: %s\n", rank, err.text);
    }
    hvd_request_free(request);
    return status == 0;
}

static void fill(void)
{
    for (int64_t i = 0; i < COUNT; i++) {
        values[i] = value_of(rank, i);
    }
    gpu_copy(memory, values, BYTES, stream);
    gpu_finish(stream);
}

static bool are_right(void)
{
    bool good = true;

    gpu_copy(values, gathered, (size_t)size * BYTES, stream);
    gpu_finish(stream);
    for (int64_t i = 0; i < (int64_t)size * COUNT; i++) {
        float sum = 0;

        for (int r = 0; r < size; r++) {
            sum += value_of(r, i % COUNT);
        }
        good &= values[i] == sum;
    }
    return good;
}

static bool is_refused(int status, const struct hvd_error *err)
{
    fprintf(stderr, "# rank %d: %d %s\n", rank, status, err->text);
    return status == HVD_ERR_UNSUPPORTED &&
           strstr(err->text, "its stream is being captured into a CUDA graph") != NULL;
}

/* Checks that starting on a captured stream, and waiting on it, are refused. */
static bool refuses(void *captured)
{
    struct hvd_tensor tensor = tensor_of(HVD_FLOAT32, memory);
    struct hvd_request *request = NULL;
    struct hvd_error err = {0}, later = {0};
    void *graph;
    bool good;

    call_finish(hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &err),
                &request, &err);
    if (cuStreamBeginCapture_v2(captured, THREAD_LOCAL) != 0) {
        return false;
    }
    good = is_refused(hvd_wait_on(request, captured, -1, &err), &err);
    tensor.stream = captured;
    tensor.name = "refused";
    good &= is_refused(
        hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, &later), &later);
    good &= cuStreamEndCapture(captured, &graph) == 0;
    good &= hvd_wait_on(request, captured, -1, &err) == 0;
    hvd_request_free(request);
    return good;
}

int main(void)
{
    void *other;
    pthread_t thread;
    bool good;

    if (!gpu_open()) {
        return 1;
    }
    rank = report_init();
    size = hvd_size();
    stream = gpu_stream();
    other = gpu_stream();
    memory = gpu_memory(BYTES);
    gathered = gpu_memory((size_t)size * BYTES);
    fill();
    thread = begin_capture(other);
    good = adds(HVD_FLOAT32) && gathers();
    good = good && adds(HVD_INT16); /* goes through the host */
    report(end_capture(thread), "a capture by another thread stays valid");
    report(good && are_right(), "collectives work during the capture");
    report(refuses(other), "a stream that is being captured is refused");
    hvd_shutdown();
    return report_done();
}
