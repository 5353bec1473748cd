/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA events that keep their device alive. A training records hundreds of them in each
 * step, so they are kept for reuse, and streams wait for no more of them than needed. */
#include <stdlib.h>

#include "collectives/gpu/module/device.h"
#include "gpu_binding/base/error.h"

static void forget_waiters(struct hvd_gpu_event *event)
{
    for (int i = 0; i < HVD_GPU_EVENT_WAITERS; i++) {
        atomic_store(&event->waiters[i], 0);
    }
}

static struct hvd_gpu_event *take_kept(struct hvd_gpu_device *device)
{
    struct hvd_gpu_event *event;

    pthread_mutex_lock(&device->event_lock);
    event = device->kept_events;
    if (event != NULL) {
        device->kept_events = event->next;
    }
    pthread_mutex_unlock(&device->event_lock);
    return event;
}

static int make_event(struct hvd_gpu_device *device, struct hvd_gpu_event **out,
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
    event->device = device;
    *out = event;
    return 0;
}

int hvd_event_create(struct hvd_gpu_device *device, struct hvd_gpu_event **out,
                     struct hvd_error *err)
{
    struct hvd_gpu_event *event = take_kept(device);
    int status = event == NULL ? make_event(device, &event, err) : 0;

    if (status != 0) {
        return status;
    }
    forget_waiters(event);
    atomic_fetch_add(&device->owners, 1);
    *out = event;
    return 0;
}

/* A stream that still waits for the event is not disturbed when the event is recorded
 * again: it waits for the recording before. */
void hvd_event_destroy(struct hvd_gpu_event *event)
{
    struct hvd_gpu_device *device;

    if (event == NULL) {
        return;
    }
    device = event->device;
    pthread_mutex_lock(&device->event_lock);
    event->next = device->kept_events;
    device->kept_events = event;
    pthread_mutex_unlock(&device->event_lock);
    hvd_device_drop(device);
}

CUevent hvd_event_handle(const struct hvd_gpu_event *event)
{
    return event->handle;
}

/* Returns a number that no other stream of this process has, now or later; 0 if the
 * driver does not tell. The default stream of the context has its own, because it must
 * not be asked for while another stream is being captured. The context must be
 * current. */
static uint64_t identify_stream(const struct hvd_gpu_device *device, CUstream stream)
{
    const struct hvd_cuda *cuda = device->cuda;
    unsigned long long id = 0;

    if ((uintptr_t)stream <= 1) {
        return UINT64_MAX;
    }
    if ((uintptr_t)stream == 2) { /* CU_STREAM_PER_THREAD: one handle, many streams */
        return 0;
    }
    return cuda->stream_id != NULL && cuda->stream_id(stream, &id) == CUDA_SUCCESS
               ? (uint64_t)id + 1
               : 0;
}

/* The device's context must be current. */
static int record_event(struct hvd_gpu_event *event, void *stream, struct hvd_error *err)
{
    const struct hvd_cuda *cuda = event->device->cuda;
    int error = cuda->event_record(event->handle, stream);

    forget_waiters(event);
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

/* Numbers recordings in the order in which they are on their stream, also if several
 * threads use it. The context must be current. */
static int record_in_order(struct hvd_gpu_event *event, void *stream,
                           struct hvd_gpu_position *position, struct hvd_error *err)
{
    struct hvd_gpu_device *device = event->device;
    int status;

    pthread_mutex_lock(&device->order_lock);
    position->number = ++device->recordings;
    status = record_event(event, stream, err);
    pthread_mutex_unlock(&device->order_lock);
    position->stream = status == 0 ? identify_stream(device, stream) : 0;
    return status;
}

int hvd_event_record_on(struct hvd_gpu_event *event, void *stream,
                        struct hvd_gpu_position *position, struct hvd_error *err)
{
    struct hvd_gpu_position unused;
    int status = hvd_device_enter(event->device, err);

    if (status == 0) {
        status = hvd_device_check_stream(event->device, stream, err);
        if (status == 0) {
            status = record_in_order(event, stream, position != NULL ? position : &unused,
                                     err);
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

/* Whether this stream, by its id, is one of the last that wait for the event. */
static bool has_waiter(const struct hvd_gpu_event *event, uint64_t id)
{
    bool has = false;

    for (int i = 0; i < HVD_GPU_EVENT_WAITERS; i++) {
        has |= id != 0 && atomic_load(&event->waiters[i]) == id;
    }
    return has;
}

static void add_waiter(struct hvd_gpu_event *event, uint64_t id)
{
    for (int i = HVD_GPU_EVENT_WAITERS - 1; i > 0; i--) {
        atomic_store(&event->waiters[i], atomic_load(&event->waiters[i - 1]));
    }
    atomic_store(&event->waiters[0], id);
}

/* Puts the wait on the stream, unless one is there. Without the lock, another thread
 * could rely on a wait that is not on the stream yet. The context must be current. */
static int wait_once(struct hvd_gpu_event *event, CUstream stream)
{
    struct hvd_gpu_device *device = event->device;
    uint64_t id = identify_stream(device, stream);
    int error = CUDA_SUCCESS;

    pthread_mutex_lock(&device->order_lock);
    if (!has_waiter(event, id)) {
        error = device->cuda->stream_wait(stream, event->handle, 0);
        if (error == CUDA_SUCCESS) {
            add_waiter(event, id);
        }
    }
    pthread_mutex_unlock(&device->order_lock);
    return error;
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
        error = wait_once(event, stream);
    }
    hvd_device_leave(event->device);
    return error == CUDA_SUCCESS ? status
                                 : hvd_cuda_fail(cuda, "cuStreamWaitEvent", error, err);
}
