/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of NCCL: allocates, deregisters and frees them. */
#include <stdlib.h>

#include "collectives/gpu/module/device.h"
#include "gpu_binding/base/error.h"

int hvd_window_create(struct hvd_gpu_comm *comm, size_t bytes,
                      struct hvd_gpu_window **out, struct hvd_error *err)
{
    struct hvd_gpu_device *device = comm->device;
    const struct hvd_nccl *nccl = device->nccl;
    struct hvd_gpu_window *window;
    int status, result;

    if (nccl->version < NCCL_WINDOW_VERSION || nccl->window_register == NULL ||
        nccl->window_deregister == NULL || nccl->mem_alloc == NULL ||
        nccl->mem_free == NULL) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "NCCL %d has no windows: 2.27 or later is needed", nccl->version);
    }
    window = calloc(1, sizeof(*window));
    if (window == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a window of NCCL");
    }
    status = hvd_device_enter(device, err);
    if (status != 0) {
        free(window);
        return status;
    }
    result = nccl->mem_alloc(&window->memory, bytes);
    hvd_device_leave(device);
    if (result != NCCL_SUCCESS) {
        free(window);
        return hvd_nccl_fail(nccl, "ncclMemAlloc", result, NULL, err);
    }
    window->comm = comm;
    window->bytes = bytes;
    pthread_mutex_lock(&device->lock);
    window->next = comm->windows;
    comm->windows = window;
    pthread_mutex_unlock(&device->lock);
    *out = window;
    return 0;
}

void hvd_window_destroy(struct hvd_gpu_window *window)
{
    struct hvd_gpu_device *device = window->comm->device;
    struct hvd_gpu_window **at = &window->comm->windows;

    pthread_mutex_lock(&device->lock);
    while (*at != window) {
        at = &(*at)->next;
    }
    *at = window->next;
    pthread_mutex_unlock(&device->lock);
    window->next = NULL;
    hvd_device_retire(device, window, NULL);
}

void hvd_window_deregister_all(struct hvd_gpu_comm *comm, ncclComm_t handle)
{
    for (struct hvd_gpu_window *window = comm->windows; window != NULL;
         window = window->next) {
        if (window->handle != NULL) {
            comm->device->nccl->window_deregister(handle, window->handle);
            window->handle = NULL;
        }
    }
}

void hvd_window_free_all(struct hvd_gpu_comm *comm)
{
    struct hvd_gpu_window *window = comm->windows;

    comm->windows = NULL;
    while (window != NULL) {
        struct hvd_gpu_window *next = window->next;

        hvd_window_free(comm->device, window);
        window = next;
    }
}
