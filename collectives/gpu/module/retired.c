/* SPDX-License-Identifier: Apache-2.0 */
/* Frees memory, windows and inboxes that are no longer used, at once or by a thread. */
#include <stdlib.h>

#include "collectives/gpu/module/device.h"
#include "collectives/gpu/module/inbox.h"
#include "gpu_binding/base/thread.h"

void hvd_memory_free(struct hvd_gpu_device *device, enum hvd_gpu_memory_kind memory_kind,
                     void *address)
{
    bool entered = hvd_device_enter(device, NULL) == 0;

    if (memory_kind == HVD_GPU_HOST_MEMORY) {
        device->cuda->host_free(address);
    } else {
        device->cuda->mem_free((CUdeviceptr)(uintptr_t)address);
    }
    if (entered) {
        hvd_device_leave(device);
    }
}

void hvd_window_free(struct hvd_gpu_device *device, struct hvd_gpu_window *window)
{
    bool entered = hvd_device_enter(device, NULL) == 0;

    device->nccl->mem_free(window->memory);
    if (entered) {
        hvd_device_leave(device);
    }
    free(window);
}

static void close_peers(const struct hvd_cuda *cuda, struct hvd_gpu_inbox *inbox)
{
    for (int i = 0; i < HVD_KERNEL_RANKS; i++) {
        if (inbox->peers[i] != NULL && inbox->peers[i] != inbox->memory) {
            cuda->ipc_close((CUdeviceptr)(uintptr_t)inbox->peers[i]);
        }
        inbox->peers[i] = NULL;
    }
}

void hvd_inbox_free(struct hvd_gpu_device *device, struct hvd_gpu_inbox *inbox)
{
    if (hvd_device_enter(device, NULL) == 0) {
        close_peers(device->cuda, inbox);
        if (inbox->memory != NULL &&
            (!inbox->is_shared || !atomic_load(&device->is_aborted))) {
            device->cuda->mem_free((CUdeviceptr)(uintptr_t)inbox->memory);
        }
        hvd_device_leave(device);
    }
    free(inbox);
}

/* The objects that are freed next: one of the three, or none. */
struct retired {
    struct hvd_gpu_window *window;
    struct hvd_gpu_inbox *inbox;
    struct hvd_gpu_memory *memory;
};

/* The lock is held. */
static bool take_retired(struct hvd_gpu_device *device, struct retired *taken)
{
    *taken = (struct retired){.window = device->retired};
    if (taken->window != NULL) {
        device->retired = taken->window->next;
    } else if (device->retired_inboxes != NULL) {
        taken->inbox = device->retired_inboxes;
        device->retired_inboxes = taken->inbox->next;
    } else if (device->retired_memory != NULL) {
        taken->memory = device->retired_memory;
        device->retired_memory = taken->memory->next;
    } else {
        return false;
    }
    return true;
}

static void *free_retired(void *argument)
{
    struct hvd_gpu_device *device = argument;
    struct retired taken;

    pthread_mutex_lock(&device->lock);
    while (take_retired(device, &taken)) {
        pthread_mutex_unlock(&device->lock);
        if (taken.window != NULL) {
            hvd_window_free(device, taken.window);
        } else if (taken.inbox != NULL) {
            hvd_inbox_free(device, taken.inbox);
        } else {
            hvd_memory_free(device, taken.memory->memory_kind, taken.memory->address);
            free(taken.memory);
        }
        pthread_mutex_lock(&device->lock);
    }
    device->is_freeing = false;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
    return NULL;
}

/* Starts a thread unless one frees already. cuMemFree, and ncclMemFree without cuMem,
 * wait for all work of the device. Some of that may wait for a rank that waits for the
 * caller: for this launcher, or for libhvd; or for a rank that has died. The lock is held
 * on entry, but not on return. */
static void begin_freeing(struct hvd_gpu_device *device)
{
    pthread_t thread;
    bool begins = !device->is_freeing;

    device->is_freeing = true;
    pthread_mutex_unlock(&device->lock);
    if (begins && hvd_thread_start(&thread, free_retired, device) == 0) {
        pthread_detach(thread);
    } else if (begins) {
        free_retired(device);
    }
}

void hvd_device_retire(struct hvd_gpu_device *device, struct hvd_gpu_window *windows,
                       struct hvd_gpu_inbox *inbox)
{
    if (windows == NULL && inbox == NULL) {
        return;
    }
    pthread_mutex_lock(&device->lock);
    while (windows != NULL) {
        struct hvd_gpu_window *next = windows->next;

        windows->next = device->retired;
        device->retired = windows;
        windows = next;
    }
    if (inbox != NULL) {
        inbox->next = device->retired_inboxes;
        device->retired_inboxes = inbox;
    }
    begin_freeing(device);
}

void hvd_memory_retire(struct hvd_gpu_device *device,
                       enum hvd_gpu_memory_kind memory_kind, void *address)
{
    struct hvd_gpu_memory *memory = calloc(1, sizeof(*memory));

    if (memory == NULL) {
        hvd_memory_free(device, memory_kind, address);
        return;
    }
    memory->memory_kind = memory_kind;
    memory->address = address;
    pthread_mutex_lock(&device->lock);
    memory->next = device->retired_memory;
    device->retired_memory = memory;
    begin_freeing(device);
}

bool hvd_memory_await(struct hvd_gpu_device *device, int timeout_ms)
{
    bool has_ended;

    pthread_mutex_lock(&device->lock);
    has_ended = hvd_device_await(device, &device->is_freeing, false, timeout_ms);
    pthread_mutex_unlock(&device->lock);
    return has_ended;
}
