/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU of this process: opening and closing it. */
#include <stdlib.h>

#include "collectives/gpu/module/device.h"
#include "collectives/gpu/module/inbox.h"
#include "collectives/gpu/module/timing.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/error.h"

/* How long to wait for the device before windows and inboxes are freed, all together. */
static const int settle_ms = 1000;

static int find_device(struct hvd_gpu_device *device, struct hvd_error *err)
{
    const struct hvd_cuda *cuda = device->cuda;
    int count = 0;
    int error = cuda->init(0);

    if (error != CUDA_SUCCESS) {
        return hvd_cuda_fail(cuda, "cuInit", error, err);
    }
    error = cuda->device_count(&count);
    if (error != CUDA_SUCCESS) {
        return hvd_cuda_fail(cuda, "cuDeviceGetCount", error, err);
    }
    if (device->ordinal < 0 || device->ordinal >= count) {
        return hvd_fail(err, HVD_ERR_ARG,
                        "there is no GPU %d: this process sees %d (CUDA_VISIBLE_DEVICES)",
                        device->ordinal, count);
    }
    error = cuda->device_get(&device->number, device->ordinal);
    return error == CUDA_SUCCESS ? 0 : hvd_cuda_fail(cuda, "cuDeviceGet", error, err);
}

/* Creates streams that do not synchronize with the default stream, with the highest
 * priority, so that collectives run before the training's kernels. */
static int open_streams(struct hvd_gpu_device *device, struct hvd_error *err)
{
    const struct hvd_cuda *cuda = device->cuda;
    int least = 0, greatest = 0;
    int error = cuda->priority_range(&least, &greatest);

    if (error != CUDA_SUCCESS) {
        return hvd_cuda_fail(cuda, "cuCtxGetStreamPriorityRange", error, err);
    }
    for (int i = 0; i < HVD_GPU_QUEUES; i++) {
        error =
            cuda->stream_create(&device->streams[i], CU_STREAM_NON_BLOCKING, greatest);
        if (error != CUDA_SUCCESS) {
            device->streams[i] = NULL;
            return hvd_cuda_fail(cuda, "cuStreamCreateWithPriority", error, err);
        }
    }
    return 0;
}

static int open_context(struct hvd_gpu_device *device, struct hvd_error *err)
{
    int error = device->cuda->ctx_retain(&device->ctx, device->number);
    int status;

    if (error != CUDA_SUCCESS) {
        device->ctx = NULL;
        return hvd_cuda_fail(device->cuda, "cuDevicePrimaryCtxRetain", error, err);
    }
    status = hvd_device_enter(device, err);
    if (status == 0) {
        status = open_streams(device, err);
        if (status == 0) {
            hvd_kernels_load(&device->kernels, device->cuda);
        }
        hvd_device_leave(device);
    }
    return status;
}

/* Frees the windows and inboxes of the communicators that ended with the device. After an
 * abort, the device may still use them: then they leak. */
static void free_memory(struct hvd_gpu_device *device)
{
    const int64_t end_ns = hvd_clock_ns() + settle_ms * INT64_C(1000000);

    for (struct hvd_gpu_comm *comm = device->comms; comm != NULL; comm = comm->next) {
        const int64_t left_ns = end_ns - hvd_clock_ns();
        const int left_ms = left_ns > 0 ? (int)(left_ns / 1000000) : 0;

        if ((comm->windows != NULL || comm->inbox != NULL) &&
            hvd_comm_settle(comm, left_ms, NULL) == 0) {
            hvd_window_free_all(comm);
            if (comm->inbox != NULL) {
                hvd_inbox_free(device, comm->inbox);
                comm->inbox = NULL;
            }
        }
    }
}

void hvd_device_close(struct hvd_gpu_device *device)
{
    bool entered = device->ctx != NULL && hvd_device_enter(device, NULL) == 0;

    if (entered) {
        free_memory(device);
    }
    hvd_kernels_unload(&device->kernels);
    for (int i = 0; i < HVD_GPU_QUEUES; i++) {
        if (device->streams[i] != NULL) {
            device->cuda->stream_destroy(device->streams[i]);
        }
    }
    hvd_timing_finish_device(device);
    if (entered) {
        hvd_device_leave(device);
    }
    hvd_device_drop(device);
}

static int init_locks(struct hvd_gpu_device *device, struct hvd_error *err)
{
    pthread_condattr_t attributes;
    int failed = pthread_condattr_init(&attributes);

    failed |= pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    failed |= pthread_cond_init(&device->changed, &attributes);
    failed |= pthread_mutex_init(&device->lock, NULL);
    failed |= pthread_mutex_init(&device->event_lock, NULL);
    failed |= pthread_mutex_init(&device->order_lock, NULL);
    pthread_condattr_destroy(&attributes);
    return failed == 0 ? 0 : hvd_fail(err, HVD_ERR_SYS, "cannot create locks");
}

int hvd_device_open(const struct hvd_gpu_opening *opening, struct hvd_gpu_device **out,
                    struct hvd_error *err)
{
    struct hvd_gpu_library found;
    const struct hvd_cuda *cuda = hvd_cuda_find(&found);
    struct hvd_gpu_device *device;
    int status;

    if (cuda == NULL) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "%s", found.problem);
    }
    device = calloc(1, sizeof(*device));
    if (device == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a GPU");
    }
    device->cuda = cuda;
    device->ordinal = opening->device;
    device->wake = opening->wake;
    device->context = opening->context;
    device->end = &device->first;
    atomic_init(&device->owners, 1);
    status = init_locks(device, err);
    if (status != 0) {
        goto close;
    }
    status = find_device(device, err);
    if (status != 0) {
        goto close;
    }
    status = open_context(device, err);
    if (status != 0) {
        goto close;
    }
    status = hvd_launcher_start(device, err);
    if (status != 0) {
        goto close;
    }
    *out = device;
    return 0;
close:
    hvd_device_close(device);
    return status;
}
