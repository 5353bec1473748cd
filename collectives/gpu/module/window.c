/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of NCCL: allocates, registers, deregisters and frees them. */
#include <stdlib.h>

#include "collectives/gpu/module/device.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/error.h"

/* How long a registration may take, usually milliseconds: if it has failed early on
 * another rank, it does not end on this one. */
static const int64_t register_ns = 10000000000;

/* How often a wait for the device looks whether the job has been aborted. */
static const int look_ms = 100;

static void free_memory(struct hvd_gpu_device *device, void *memory)
{
    bool entered = hvd_device_enter(device, NULL) == 0;

    device->nccl->mem_free(memory);
    if (entered) {
        hvd_device_leave(device);
    }
}

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
    free_memory(device, window->memory);
    free(window);
}

/* Waits for the work that is on the communicator's stream: an abort after a failed
 * registration must not cut it off. All ranks have launched it, so it ends. */
static int await_stream(struct hvd_gpu_comm *comm, struct hvd_error *err)
{
    while (!hvd_comm_settle(comm, look_ms)) {
        if (atomic_load(&comm->device->is_aborted)) {
            return hvd_fail(err, HVD_ERR_STATE, "the job has ended");
        }
    }
    return 0;
}

int hvd_window_register(struct hvd_gpu_window *window, struct hvd_error *err)
{
    struct hvd_gpu_comm *comm = window->comm;
    const struct hvd_nccl *nccl = comm->device->nccl;
    static const char function[] = "ncclCommWindowRegister";
    int status = await_stream(comm, err);
    ncclComm_t handle = hvd_comm_handle(comm);
    int result;

    if (status != 0) {
        return status;
    }
    if (handle == NULL) {
        return hvd_fail(err, HVD_ERR_STATE, "the job has ended");
    }
    result = nccl->window_register(handle, window->memory, window->bytes, &window->handle,
                                   NCCL_WINDOW_SYMMETRIC);
    status = result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS
                 ? hvd_comm_await_until(comm, function, hvd_clock_ns() + register_ns,
                                        &window->error)
                 : hvd_nccl_fail(nccl, function, result, handle, &window->error);
    if (atomic_load(&comm->device->is_aborted)) {
        return hvd_fail(err, HVD_ERR_STATE, "the job has ended");
    }
    if (status != 0) {
        hvd_comm_abort(comm); /* NCCL reports the error for ever, to hvd_comm_look, too */
        window->handle = NULL;
        window->state = HVD_GPU_WINDOW_FAILED;
        return 0;
    }
    window->state =
        window->handle != NULL ? HVD_GPU_WINDOW_REGISTERED : HVD_GPU_WINDOW_REFUSED;
    return 0;
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

        free_memory(comm->device, window->memory);
        free(window);
        window = next;
    }
}
