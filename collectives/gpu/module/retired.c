/* SPDX-License-Identifier: Apache-2.0 */
/* Frees windows and inboxes that are no longer used, at once or by a thread. */
#include <stdlib.h>

#include "collectives/gpu/module/device.h"
#include "collectives/gpu/module/inbox.h"
#include "gpu_binding/base/thread.h"

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
        if (!inbox->is_shared || !atomic_load(&device->is_aborted)) {
            device->cuda->mem_free((CUdeviceptr)(uintptr_t)inbox->memory);
        }
        hvd_device_leave(device);
    }
    free(inbox);
}

static void *free_retired(void *argument)
{
    struct hvd_gpu_device *device = argument;

    pthread_mutex_lock(&device->lock);
    while (device->retired != NULL || device->retired_inboxes != NULL) {
        struct hvd_gpu_window *window = device->retired;
        struct hvd_gpu_inbox *inbox = device->retired_inboxes;

        if (window != NULL) {
            device->retired = window->next;
        } else {
            device->retired_inboxes = inbox->next;
        }
        pthread_mutex_unlock(&device->lock);
        if (window != NULL) {
            hvd_window_free(device, window);
        } else {
            hvd_inbox_free(device, inbox);
        }
        pthread_mutex_lock(&device->lock);
    }
    device->is_freeing = false;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
    return NULL;
}

/* cuMemFree, and ncclMemFree without cuMem, wait for all work of the device. Some of that
 * may wait for a rank that waits for the caller: for this launcher, or for libhvd. */
void hvd_device_retire(struct hvd_gpu_device *device, struct hvd_gpu_window *windows,
                       struct hvd_gpu_inbox *inbox)
{
    pthread_t thread;
    bool begins;

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
    begins = (device->retired != NULL || device->retired_inboxes != NULL) &&
             !device->is_freeing;
    device->is_freeing = device->is_freeing || begins;
    pthread_mutex_unlock(&device->lock);
    if (begins && hvd_thread_start(&thread, free_retired, device) == 0) {
        pthread_detach(thread);
    } else if (begins) {
        free_retired(device);
    }
}
