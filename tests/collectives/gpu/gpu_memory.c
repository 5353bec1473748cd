/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and streams of the GPU, for tests. */
#include "tests/collectives/gpu/gpu_memory.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "collectives/gpu/module/cuda.h"

static const struct hvd_cuda *cuda;
static CUcontext ctx, elsewhere;
static CUevent event;
static int number;

static void must(int error, const char *what)
{
    if (error != 0) {
        fprintf(stderr, "# %s: error %d\n", what, error);
        exit(1);
    }
}

int gpu_open(void)
{
    struct hvd_gpu_library found;
    const char *chosen = getenv("HVD_TEST_GPU");
    int error;

    cuda = hvd_cuda_find(&found);
    error = cuda != NULL ? cuda->init(0) : 0;
    if (cuda == NULL || error != 0) {
        fprintf(stderr, "# no GPU: %s (cuInit: %d)\n", found.problem, error);
        return 0;
    }
    number = chosen != NULL ? atoi(chosen) : 0;
    must(cuda->ctx_retain(&ctx, number), "cuDevicePrimaryCtxRetain");
    must(cuda->ctx_push(ctx), "cuCtxPushCurrent");
    must(cuda->event_create(&event, 0), "cuEventCreate");
    return 1;
}

int gpu_number(void)
{
    return number;
}

int gpu_go_elsewhere(void)
{
    int count = 0;

    must(cuda->device_count(&count), "cuDeviceGetCount");
    if (count < 2) {
        return 0;
    }
    must(cuda->ctx_retain(&elsewhere, (number + 1) % count), "cuDevicePrimaryCtxRetain");
    must(cuda->ctx_push(elsewhere), "cuCtxPushCurrent");
    return 1;
}

int gpu_come_back(void)
{
    CUcontext popped = NULL;

    must(cuda->ctx_pop(&popped), "cuCtxPopCurrent");
    return popped == elsewhere;
}

void *gpu_stream(void)
{
    CUstream stream;
    int least, greatest;

    must(cuda->priority_range(&least, &greatest), "cuCtxGetStreamPriorityRange");
    must(cuda->stream_create(&stream, CU_STREAM_NON_BLOCKING, least),
         "cuStreamCreateWithPriority");
    return stream;
}

void *gpu_memory(size_t bytes)
{
    CUdeviceptr memory = 0;

    must(cuda->mem_alloc(&memory, bytes), "cuMemAlloc");
    return (void *)(uintptr_t)memory;
}

void *gpu_host_memory(size_t bytes)
{
    void *memory = NULL;

    must(cuda->host_alloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc");
    return memory;
}

void gpu_copy(void *to, const void *from, size_t bytes, void *stream)
{
    if (bytes > 0) {
        must(cuda->copy((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, bytes,
                        stream),
             "cuMemcpyAsync");
    }
}

void gpu_finish(void *stream)
{
    int error;

    must(cuda->event_record(event, stream), "cuEventRecord");
    while ((error = cuda->event_query(event)) == CUDA_ERROR_NOT_READY) {
        sched_yield();
    }
    must(error, "cuEventQuery");
}

struct hvd_tensor gpu_tensor(const char *name, enum hvd_dtype dtype, const int64_t *shape,
                             int ndim, const void *input, void *output, void *stream)
{
    return (struct hvd_tensor){.name = name,
                               .input = input,
                               .output = output,
                               .shape = shape,
                               .ndim = ndim,
                               .dtype = dtype,
                               .device = gpu_number(),
                               .stream = stream};
}
