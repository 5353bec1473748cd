/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA events that keep their device alive. */
#include <stdlib.h>

#include "collectives/gpu/module/device.h"
#include "gpu_binding/base/error.h"

struct hvd_gpu_event {
    struct hvd_gpu_device *device; /* the event holds a reference to it */
    CUevent handle;
};

int hvd_event_create(struct hvd_gpu_device *device, struct hvd_gpu_event **out,
                     struct hvd_error *err)
{
    struct hvd_gpu_event *event = calloc(1, sizeof(*event));
    int status, error;

    if (event == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for an event");
    }
    status = hvd_device_enter(device, err);
    if (status != 0) {
        free(event);
        return status;
    }
    error = device->cuda->event_create(&event->handle, CU_EVENT_DISABLE_TIMING);
    hvd_device_leave(device);
    if (error != CUDA_SUCCESS) {
        free(event);
        return hvd_cuda_fail(device->cuda, "cuEventCreate", error, err);
    }
    atomic_fetch_add(&device->owners, 1);
    event->device = device;
    *out = event;
    return 0;
}

void hvd_event_destroy(struct hvd_gpu_event *event)
{
    bool entered;

    if (event == NULL) {
        return;
    }
    entered = hvd_device_enter(event->device, NULL) == 0;
    event->device->cuda->event_destroy(event->handle);
    if (entered) {
        hvd_device_leave(event->device);
    }
    hvd_device_drop(event->device);
    free(event);
}

CUevent hvd_event_handle(const struct hvd_gpu_event *event)
{
    return event->handle;
}

/* The device's context must be current. */
static int record_event(struct hvd_gpu_event *event, void *stream, struct hvd_error *err)
{
    const struct hvd_cuda *cuda = event->device->cuda;
    int error = cuda->event_record(event->handle, stream);

    return error == CUDA_SUCCESS ? 0 : hvd_cuda_fail(cuda, "cuEventRecord", error, err);
}

int hvd_event_record(struct hvd_gpu_event *event, void *stream, struct hvd_error *err)
{
    int status = hvd_device_enter(event->device, err);

    if (status == 0) {
        status = record_event(event, stream, err);
        hvd_device_leave(event->device);
    }
    return status;
}

int hvd_event_record_on(struct hvd_gpu_event *event, void *stream, struct hvd_error *err)
{
    int status = hvd_device_enter(event->device, err);

    if (status == 0) {
        status = hvd_device_check_stream(event->device, stream, err);
        if (status == 0) {
            status = record_event(event, stream, err);
        }
        hvd_device_leave(event->device);
    }
    return status;
}

int hvd_event_test(struct hvd_gpu_event *event, struct hvd_error *err)
{
    const struct hvd_cuda *cuda = event->device->cuda;
    int status = hvd_device_enter(event->device, err);
    int error;

    if (status != 0) {
        return status;
    }
    error = cuda->event_query(event->handle);
    hvd_device_leave(event->device);
    if (error == CUDA_SUCCESS) {
        return 0;
    }
    return error == CUDA_ERROR_NOT_READY
               ? HVD_INPROGRESS
               : hvd_cuda_fail(cuda, "cuEventQuery", error, err);
}

int hvd_event_wait(struct hvd_gpu_event *event, void *stream, struct hvd_error *err)
{
    const struct hvd_cuda *cuda = event->device->cuda;
    int status = hvd_device_enter(event->device, err);
    int error = CUDA_SUCCESS;

    if (status != 0) {
        return status;
    }
    status = hvd_device_check_stream(event->device, stream, err);
    if (status == 0) {
        error = cuda->stream_wait(stream, event->handle, 0);
    }
    hvd_device_leave(event->device);
    return error == CUDA_SUCCESS ? status
                                 : hvd_cuda_fail(cuda, "cuStreamWaitEvent", error, err);
}
