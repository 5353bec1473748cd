/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the CUDA driver at run time and turns its errors into messages. */
#include "collectives/gpu/module/cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "collectives/gpu/module/hints.h"
#include "gpu_binding/base/error.h"

#define SYMBOL(member, name, older)                                                      \
    {                                                                                    \
        name, older, offsetof(struct hvd_cuda, member), false                            \
    }

#define NEWER(member, name)                                                              \
    {                                                                                    \
        name, NULL, offsetof(struct hvd_cuda, member), true                              \
    }

static const struct hvd_library_symbol symbols[] = {
    /* must be the first: find_cuda checks the version before it binds the others */
    SYMBOL(driver_version, "cuDriverGetVersion", NULL),
    SYMBOL(init, "cuInit", NULL),
    SYMBOL(error_name, "cuGetErrorName", NULL),
    SYMBOL(error_string, "cuGetErrorString", NULL),
    SYMBOL(device_count, "cuDeviceGetCount", NULL),
    SYMBOL(device_get, "cuDeviceGet", NULL),
    SYMBOL(device_uuid, "cuDeviceGetUuid_v2", "cuDeviceGetUuid"),
    SYMBOL(device_bus_id, "cuDeviceGetPCIBusId", NULL),
    SYMBOL(device_attribute, "cuDeviceGetAttribute", NULL),
    SYMBOL(can_access, "cuDeviceCanAccessPeer", NULL),
    SYMBOL(p2p_attribute, "cuDeviceGetP2PAttribute", NULL),
    SYMBOL(ctx_retain, "cuDevicePrimaryCtxRetain", NULL),
    SYMBOL(ctx_release, "cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease"),
    SYMBOL(ctx_push, "cuCtxPushCurrent_v2", NULL),
    SYMBOL(ctx_pop, "cuCtxPopCurrent_v2", NULL),
    SYMBOL(priority_range, "cuCtxGetStreamPriorityRange", NULL),
    SYMBOL(stream_create, "cuStreamCreateWithPriority", NULL),
    SYMBOL(stream_destroy, "cuStreamDestroy_v2", NULL),
    SYMBOL(stream_wait, "cuStreamWaitEvent", NULL),
    NEWER(stream_id, "cuStreamGetId"),
    SYMBOL(is_capturing, "cuStreamIsCapturing", NULL),
    SYMBOL(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", NULL),
    SYMBOL(event_create, "cuEventCreate", NULL),
    SYMBOL(event_destroy, "cuEventDestroy_v2", NULL),
    SYMBOL(event_record, "cuEventRecord", NULL),
    SYMBOL(event_query, "cuEventQuery", NULL),
    SYMBOL(event_elapsed, "cuEventElapsedTime", "cuEventElapsedTime_v2"),
    SYMBOL(mem_info, "cuMemGetInfo_v2", NULL),
    SYMBOL(mem_alloc, "cuMemAlloc_v2", NULL),
    SYMBOL(mem_free, "cuMemFree_v2", NULL),
    SYMBOL(ipc_get, "cuIpcGetMemHandle", NULL),
    SYMBOL(ipc_open, "cuIpcOpenMemHandle_v2", "cuIpcOpenMemHandle"),
    SYMBOL(ipc_close, "cuIpcCloseMemHandle", NULL),
    SYMBOL(host_alloc, "cuMemHostAlloc", NULL),
    SYMBOL(host_free, "cuMemFreeHost", NULL),
    SYMBOL(copy, "cuMemcpyAsync", NULL),
    SYMBOL(set8, "cuMemsetD8Async", NULL),
    SYMBOL(module_load, "cuModuleLoadData", NULL),
    SYMBOL(module_function, "cuModuleGetFunction", NULL),
    SYMBOL(module_unload, "cuModuleUnload", NULL),
    SYMBOL(launch, "cuLaunchKernel", NULL),
};

static struct hvd_cuda functions;
static struct hvd_gpu_library library;
static bool was_found;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int check_version(void)
{
    int error = functions.driver_version(&library.version);

    if (error == CUDA_SUCCESS && library.version >= CUDA_LEAST_VERSION) {
        return 0;
    }
    snprintf(library.problem, sizeof(library.problem),
             "cuDriverGetVersion returned version %d (error %d), but 11.0 or later is "
             "needed: install a newer NVIDIA driver",
             library.version, error);
    return HVD_ERR_UNSUPPORTED;
}

static void find_cuda(void)
{
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    library = (struct hvd_gpu_library){0};
    if (handle == NULL) {
        snprintf(library.problem, sizeof(library.problem),
                 "no CUDA driver here (%.180s): install the NVIDIA driver", dlerror());
        return;
    }
    /* Check the version first: an older driver also lacks some of the functions. */
    if (hvd_library_bind(handle, symbols, 1, &functions, &library) == 0 &&
        check_version() == 0) {
        hvd_library_bind(handle, symbols, sizeof(symbols) / sizeof(symbols[0]),
                         &functions, &library);
    }
}

const struct hvd_cuda *hvd_cuda_find(struct hvd_gpu_library *found)
{
    pthread_mutex_lock(&lock);
    if (!was_found) {
        find_cuda();
        was_found = library.problem[0] == '\0';
    }
    *found = library;
    pthread_mutex_unlock(&lock);
    return found->problem[0] == '\0' ? &functions : NULL;
}

int hvd_cuda_fail(const struct hvd_cuda *cuda, const char *function, int error,
                  struct hvd_error *err)
{
    const char *hint = hvd_cuda_hint(error);
    const char *name = NULL, *text = NULL;

    cuda->error_name(error, &name);
    cuda->error_string(error, &text);
    return hvd_fail(err, error == CUDA_ERROR_OUT_OF_MEMORY ? HVD_ERR_NOMEM : HVD_ERR_SYS,
                    "%s failed: %s %d (%s)%s%s", function, name != NULL ? name : "error",
                    error, text != NULL ? text : "unknown", hint[0] != '\0' ? "; " : "",
                    hint);
}
