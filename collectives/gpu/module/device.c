/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU of this process: its context and its owners. */
#include "collectives/gpu/module/device.h"

#include <stdlib.h>

int hvd_device_enter(struct hvd_gpu_device *device, struct hvd_error *err)
{
    int error = device->cuda->ctx_push(device->ctx);

    return error == CUDA_SUCCESS
               ? 0
               : hvd_cuda_fail(device->cuda, "cuCtxPushCurrent", error, err);
}

void hvd_device_leave(struct hvd_gpu_device *device)
{
    CUcontext popped;

    device->cuda->ctx_pop(&popped);
}

static void finish_device(struct hvd_gpu_device *device)
{
    struct hvd_gpu_comm *comm;

    if (device->ctx != NULL) {
        device->cuda->ctx_release(device->number);
    }
    while ((comm = device->comms) != NULL) {
        device->comms = comm->next;
        free(comm);
    }
    pthread_cond_destroy(&device->changed);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

void hvd_device_drop(struct hvd_gpu_device *device)
{
    if (atomic_fetch_sub(&device->owners, 1) == 1) {
        finish_device(device);
    }
}
