/* SPDX-License-Identifier: Apache-2.0 */
#include "contrib/info/check/gpu.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "contrib/info/check/values.h"
#include "gpu_binding/base/clock.h"

enum {
    COPY_BYTES = 32 << 20, /* about a millisecond over PCIe 4 */
    LEAST_COPIES = 4,
};

static bool load(struct hvd_info_cuda *cuda)
{
    struct hvd_info_cuda found;
    const struct {
        const char *name;
        void *function; /* a pointer to a pointer to a function */
    } functions[] = {
        {"cuInit", &found.init},
        {"cuDeviceGetCount", &found.device_count},
        {"cuDeviceGet", &found.device_get},
        {"cuDeviceGetName", &found.device_name},
        {"cuDeviceGetUuid_v2", &found.device_uuid},
        {"cuDevicePrimaryCtxRetain", &found.retain},
        {"cuDevicePrimaryCtxRelease_v2", &found.release},
        {"cuCtxPushCurrent_v2", &found.push},
        {"cuCtxPopCurrent_v2", &found.pop},
        {"cuMemGetInfo_v2", &found.memory_info},
        {"cuMemAlloc_v2", &found.alloc},
        {"cuMemFree_v2", &found.free},
        {"cuMemHostAlloc", &found.alloc_pinned},
        {"cuMemFreeHost", &found.free_pinned},
        {"cuMemcpyAsync", &found.copy},
        {"cuCtxSynchronize", &found.wait},
    };
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *symbol = handle != NULL ? dlsym(handle, functions[i].name) : NULL;

        if (symbol == NULL) {
            return false;
        }
        /* POSIX: symbols and functions have the same representation */
        memcpy(functions[i].function, &symbol, sizeof(symbol));
    }
    *cuda = found;
    return cuda->init(0) == 0;
}

void hvd_info_gpu_model(char model[HVD_INFO_GPU_MODEL_BYTES])
{
    struct hvd_info_cuda cuda;
    int device;

    if (!load(&cuda) || cuda.device_get(&device, 0) != 0 ||
        cuda.device_name(model, HVD_INFO_GPU_MODEL_BYTES, device) != 0) {
        model[0] = '\0';
    }
}

void hvd_info_gpu_open(struct hvd_info_gpu *gpu, int number)
{
    void *context;
    int count = 0;
    int device;

    gpu->device = -1;
    if (!load(&gpu->cuda) || gpu->cuda.device_count(&count) != 0 || count <= 0 ||
        gpu->cuda.device_get(&device, number % count) != 0 ||
        gpu->cuda.device_uuid(gpu->uuid, device) != 0 ||
        gpu->cuda.retain(&context, device) != 0) {
        return;
    }
    if (gpu->cuda.push(context) != 0) {
        gpu->cuda.release(device);
        return;
    }
    gpu->device = device;
}

void hvd_info_gpu_close(struct hvd_info_gpu *gpu)
{
    void *context;

    if (gpu->device >= 0) {
        gpu->cuda.pop(&context);
        gpu->cuda.release(gpu->device);
        gpu->device = -1;
    }
}

void *hvd_info_gpu_alloc(const struct hvd_info_gpu *gpu, size_t bytes)
{
    uint64_t memory;

    return gpu->cuda.alloc(&memory, bytes) == 0 ? (void *)(uintptr_t)memory : NULL;
}

void hvd_info_gpu_free(const struct hvd_info_gpu *gpu, void *memory)
{
    if (memory != NULL) {
        gpu->cuda.free((uint64_t)(uintptr_t)memory);
    }
}

static void measure_copies(const struct hvd_info_gpu *gpu, uint64_t to, void *from,
                           double budget_s, double *values)
{
    int64_t until = hvd_clock_ns() + (int64_t)(budget_s * 1e9);
    int64_t best = INT64_MAX;
    int copies = 0;

    memset(from, 1, COPY_BYTES);
    do {
        int64_t start = hvd_clock_ns();
        int64_t taken;

        if (gpu->cuda.copy(to, (uint64_t)(uintptr_t)from, COPY_BYTES, NULL) != 0 ||
            gpu->cuda.wait() != 0) {
            return;
        }
        taken = hvd_clock_ns() - start;
        best = taken < best ? taken : best;
    } while (++copies < LEAST_COPIES || hvd_clock_ns() < until);
    values[HVD_INFO_GPU_COPY_GBS] = (double)COPY_BYTES / (double)best;
}

void hvd_info_gpu_measure(const struct hvd_info_gpu *gpu, double budget_s, double *values)
{
    size_t unused, total;
    void *pinned = NULL;
    void *memory;

    if (gpu->device < 0) {
        return;
    }
    if (gpu->cuda.memory_info(&unused, &total) == 0) {
        values[HVD_INFO_GPU_USED_MIB] = (double)(total - unused) / (1 << 20);
    }
    memory = hvd_info_gpu_alloc(gpu, COPY_BYTES);
    if (memory != NULL && gpu->cuda.alloc_pinned(&pinned, COPY_BYTES, 0) == 0) {
        measure_copies(gpu, (uint64_t)(uintptr_t)memory, pinned, budget_s, values);
        gpu->cuda.free_pinned(pinned);
    }
    hvd_info_gpu_free(gpu, memory);
}
