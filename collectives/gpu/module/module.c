/* SPDX-License-Identifier: Apache-2.0 */
/* The table of functions that the module exports. */
#include <stdio.h>
#include <stdlib.h>

#include "collectives/gpu/module/device.h"
#include "collectives/gpu/module/inbox.h"
#include "collectives/gpu/module/kernel_image.h"
#include "collectives/gpu/module/timing.h"
#include "gpu_binding/base/attr.h"
#include "gpu_binding/base/error.h"

static void probe_facts(const char *nccl_file, struct hvd_gpu_facts *facts)
{
    hvd_cuda_find(&facts->cuda);
    hvd_nccl_find(nccl_file, &facts->nccl);
    facts->has_kernels = hvd_kernel_image.data != NULL;
    snprintf(facts->kernels, sizeof(facts->kernels), "%s", hvd_kernel_image.built);
}

static int count_devices(struct hvd_error *err)
{
    struct hvd_gpu_library found;
    const struct hvd_cuda *cuda = hvd_cuda_find(&found);
    int count = 0, error;

    if (cuda == NULL) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "%s", found.problem);
    }
    error = cuda->init(0);
    if (error != CUDA_SUCCESS) {
        return hvd_cuda_fail(cuda, "cuInit", error, err);
    }
    error = cuda->device_count(&count);
    return error == CUDA_SUCCESS ? count
                                 : hvd_cuda_fail(cuda, "cuDeviceGetCount", error, err);
}

/* The device's context must be current. */
static int fail_alloc(const struct hvd_cuda *cuda, enum hvd_gpu_memory_kind memory_kind,
                      size_t bytes, int error, struct hvd_error *err)
{
    size_t left = 0, total = 0;

    if (memory_kind == HVD_GPU_HOST_MEMORY && error == CUDA_ERROR_OUT_OF_MEMORY) {
        return hvd_fail(
            err, HVD_ERR_NOMEM,
            "cuMemHostAlloc failed: no %zu bytes of pinned memory: the node has too "
            "little free memory, or ulimit -l is too low",
            bytes);
    }
    if (error == CUDA_ERROR_OUT_OF_MEMORY &&
        cuda->mem_info(&left, &total) == CUDA_SUCCESS) {
        return hvd_fail(
            err, HVD_ERR_NOMEM,
            "cuMemAlloc failed, the GPU's memory is full: hvd needs %zu bytes, but only "
            "%zu of %zu bytes are free: use a smaller batch or a lower "
            "HOROVOD_FUSION_THRESHOLD",
            bytes, left, total);
    }
    return hvd_cuda_fail(
        cuda, memory_kind == HVD_GPU_HOST_MEMORY ? "cuMemHostAlloc" : "cuMemAlloc", error,
        err);
}

static int alloc_memory(struct hvd_gpu_device *device,
                        enum hvd_gpu_memory_kind memory_kind, size_t bytes, void **out,
                        struct hvd_error *err)
{
    const struct hvd_cuda *cuda = device->cuda;
    bool is_host = memory_kind == HVD_GPU_HOST_MEMORY;
    CUdeviceptr address = 0;
    void *memory = NULL;
    int status = hvd_device_enter(device, err);
    int error;

    if (status != 0) {
        return status;
    }
    if (is_host) {
        error = cuda->host_alloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE);
    } else {
        error = cuda->mem_alloc(&address, bytes);
        memory = (void *)(uintptr_t)address;
    }
    status = error == CUDA_SUCCESS ? 0 : fail_alloc(cuda, memory_kind, bytes, error, err);
    hvd_device_leave(device);
    if (status == 0) {
        *out = memory;
    }
    return status;
}

static int copy_on(struct hvd_gpu_device *device, void *to, const void *from,
                   size_t bytes, void *stream, struct hvd_error *err)
{
    int status = hvd_device_enter(device, err);
    int error = CUDA_SUCCESS;

    if (status != 0) {
        return status;
    }
    status = hvd_device_check_stream(device, stream, err);
    if (status == 0) {
        error = device->cuda->copy((CUdeviceptr)(uintptr_t)to,
                                   (CUdeviceptr)(uintptr_t)from, bytes, stream);
    }
    hvd_device_leave(device);
    return error == CUDA_SUCCESS
               ? status
               : hvd_cuda_fail(device->cuda, "cuMemcpyAsync", error, err);
}

static bool enter_device(struct hvd_gpu_device *device)
{
    return hvd_device_enter(device, NULL) == 0;
}

static const char *no_kernels(const struct hvd_gpu_device *device)
{
    return device->kernels.problem[0] != '\0' ? device->kernels.problem : NULL;
}

HVD_EXPORT extern const struct hvd_gpu_module hvd_gpu_module;
const struct hvd_gpu_module hvd_gpu_module = {
    .version = HVD_GPU_MODULE_VERSION,
    .probe = probe_facts,
    .count = count_devices,
    .open = hvd_device_open,
    .no_kernels = no_kernels,
    .abort = hvd_launcher_abort,
    .stop = hvd_launcher_stop,
    .close = hvd_device_close,
    .event_create = hvd_event_create,
    .event_destroy = hvd_event_destroy,
    .event_record = hvd_event_record_on,
    .event_test = hvd_event_test,
    .event_wait = hvd_event_wait,
    .enter = enter_device,
    .leave = hvd_device_leave,
    .alloc = alloc_memory,
    .free = hvd_memory_free,
    .retire = hvd_memory_retire,
    .await_retired = hvd_memory_await,
    .copy = copy_on,
    .identify = hvd_comm_identify,
    .link = hvd_links_between,
    .comm_create = hvd_comm_create,
    .comm_check = hvd_comm_check,
    .comm_destroy = hvd_comm_destroy,
    .comm_abandon = hvd_comm_abandon,
    .window_create = hvd_window_create,
    .window_destroy = hvd_window_destroy,
    .inbox_create = hvd_inbox_create,
    .inbox_destroy = hvd_inbox_destroy,
    .submit = hvd_launcher_submit,
    .timing_create = hvd_timing_create,
    .timing_read = hvd_timing_read,
    .timing_destroy = hvd_timing_destroy,
};
