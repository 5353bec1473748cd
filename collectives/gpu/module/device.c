/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU of this process: its context, waits for its flags, and its owners. */
#include "collectives/gpu/module/device.h"

#include <errno.h>
#include <stdlib.h>

#include "gpu_binding/base/error.h"

/* Per thread: the nesting depth of hvd_device_enter, and the thread's capture mode before
 * the outermost one. In global mode, CUDA's default, most calls that wait or allocate
 * fail while any thread captures a stream, and they invalidate that capture. */
static _Thread_local int depth;
static _Thread_local int outer_mode;

int hvd_device_enter(struct hvd_gpu_device *device, struct hvd_error *err)
{
    int error = device->cuda->ctx_push(device->ctx);

    if (error != CUDA_SUCCESS) {
        return hvd_cuda_fail(device->cuda, "cuCtxPushCurrent", error, err);
    }
    if (depth++ == 0) {
        outer_mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        device->cuda->exchange_capture_mode(&outer_mode);
    }
    return 0;
}

void hvd_device_leave(struct hvd_gpu_device *device)
{
    CUcontext popped;

    if (--depth == 0) {
        device->cuda->exchange_capture_mode(&outer_mode);
    }
    device->cuda->ctx_pop(&popped);
}

/* The legacy default streams, 0 and 1, are not asked: they cannot be captured, and the
 * query fails while another stream is being captured. */
int hvd_device_check_stream(const struct hvd_gpu_device *device, CUstream stream,
                            struct hvd_error *err)
{
    int captures = CU_STREAM_CAPTURE_STATUS_NONE;
    int error = (uintptr_t)stream <= 1 ? CUDA_SUCCESS
                                       : device->cuda->is_capturing(stream, &captures);

    if (error != CUDA_SUCCESS) {
        return hvd_cuda_fail(device->cuda, "cuStreamIsCapturing", error, err);
    }
    return captures == CU_STREAM_CAPTURE_STATUS_NONE
               ? 0
               : hvd_fail(err, HVD_ERR_UNSUPPORTED,
                          "its stream is being captured into a CUDA graph, which cannot "
                          "contain hvd's collectives: capture the computation alone "
                          "(torch.cuda.graph, make_graphed_callables), and start and "
                          "synchronize collectives outside of the capture");
}

struct timespec hvd_device_after(int ms)
{
    const long second = 1000000000;
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= second) {
        until.tv_sec++;
        until.tv_nsec -= second;
    }
    return until;
}

bool hvd_device_await(struct hvd_gpu_device *device, const bool *flag, bool wanted,
                      int ms)
{
    struct timespec until = hvd_device_after(ms);

    while (*flag != wanted) {
        if (pthread_cond_timedwait(&device->changed, &device->lock, &until) ==
            ETIMEDOUT) {
            return *flag == wanted;
        }
    }
    return true;
}

/* Destroys the events that are kept for reuse. */
static void finish_events(struct hvd_gpu_device *device)
{
    bool entered = device->kept_events != NULL && hvd_device_enter(device, NULL) == 0;
    struct hvd_gpu_event *event;

    while ((event = device->kept_events) != NULL) {
        device->kept_events = event->next;
        device->cuda->event_destroy(event->handle);
        free(event);
    }
    if (entered) {
        hvd_device_leave(device);
    }
}

static void finish_device(struct hvd_gpu_device *device)
{
    struct hvd_gpu_comm *comm;

    finish_events(device);
    if (device->ctx != NULL) {
        device->cuda->ctx_release(device->number);
    }
    while ((comm = device->comms) != NULL) {
        device->comms = comm->next;
        free(comm);
    }
    pthread_cond_destroy(&device->changed);
    pthread_mutex_destroy(&device->lock);
    pthread_mutex_destroy(&device->event_lock);
    pthread_mutex_destroy(&device->order_lock);
    free(device);
}

void hvd_device_drop(struct hvd_gpu_device *device)
{
    if (atomic_fetch_sub(&device->owners, 1) == 1) {
        finish_device(device);
    }
}
