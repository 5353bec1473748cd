/* SPDX-License-Identifier: Apache-2.0 */
/* Inboxes: memory of CUDA that the other ranks of a node open by its handle. */
#include "collectives/gpu/module/inbox.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/gpu/module/device.h"
#include "gpu_binding/base/error.h"

/* The driver takes memory of its own for it: a handle is for a whole allocation. */
static int allocate(struct hvd_gpu_inbox *inbox, struct hvd_error *err)
{
    const struct hvd_gpu_device *device = inbox->comm->device;
    const struct hvd_cuda *cuda = device->cuda;
    CUdeviceptr address = 0;
    int error = cuda->mem_alloc(&address, inbox->bytes);

    if (error != CUDA_SUCCESS) {
        return hvd_cuda_fail(cuda, "cuMemAlloc", error, err);
    }
    error = cuda->ipc_get((struct hvd_cuda_handle *)inbox->handle, address);
    if (error != CUDA_SUCCESS) {
        cuda->mem_free(address);
        return hvd_cuda_fail(cuda, "cuIpcGetMemHandle", error, err);
    }
    if (cuda->device_attribute(&inbox->blocks, CU_DEVICE_MULTIPROCESSORS,
                               device->number) != CUDA_SUCCESS) {
        inbox->blocks = 1;
    }
    inbox->memory = (char *)(uintptr_t)address;
    return 0;
}

int hvd_inbox_create(struct hvd_gpu_comm *comm, size_t slot_bytes,
                     struct hvd_gpu_inbox **out, struct hvd_error *err)
{
    struct hvd_gpu_device *device = comm->device;
    struct hvd_gpu_inbox *inbox;
    int status;

    if (device->kernels.aborted == NULL) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "there is no pinned memory by which to stop a kernel");
    }
    inbox = calloc(1, sizeof(*inbox));
    if (inbox == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for an inbox");
    }
    inbox->comm = comm;
    inbox->slot_bytes = slot_bytes;
    inbox->head_bytes = HVD_KERNEL_HEAD_BYTES;
    inbox->bytes = HVD_KERNEL_HEAD_BYTES + 2 * (size_t)comm->size * slot_bytes;
    status = hvd_device_enter(device, err);
    if (status == 0) {
        status = allocate(inbox, err);
        hvd_device_leave(device);
    }
    if (status != 0) {
        free(inbox);
        return status;
    }
    inbox->peers[comm->rank] = inbox->memory;
    comm->inbox = inbox;
    *out = inbox;
    return 0;
}

int hvd_inbox_open(struct hvd_gpu_inbox *inbox, int rank, const unsigned char *handle,
                   struct hvd_error *err)
{
    struct hvd_gpu_device *device = inbox->comm->device;
    struct hvd_cuda_handle ipc;
    CUdeviceptr address = 0;
    int status, error;

    inbox->is_shared = true;
    if (rank == inbox->comm->rank) {
        return 0;
    }
    status = hvd_device_enter(device, err);
    if (status != 0) {
        return status;
    }
    memcpy(&ipc, handle, sizeof(ipc));
    error = device->cuda->ipc_open(&address, ipc, CU_IPC_LAZY_PEER_ACCESS);
    hvd_device_leave(device);
    if (error != CUDA_SUCCESS) {
        return hvd_cuda_fail(device->cuda, "cuIpcOpenMemHandle", error, err);
    }
    inbox->peers[rank] = (char *)(uintptr_t)address;
    return 0;
}

void hvd_inbox_destroy(struct hvd_gpu_inbox *inbox)
{
    if (inbox != NULL) {
        inbox->comm->inbox = NULL;
        hvd_device_retire(inbox->comm->device, NULL, inbox);
    }
}

uint32_t hvd_inbox_begin(struct hvd_gpu_inbox *inbox, struct hvd_kernel_push *push)
{
    push->call = ++inbox->calls;
    push->slot_bytes = (uint32_t)inbox->slot_bytes;
    push->rank = inbox->comm->rank;
    push->ranks = inbox->comm->size;
    memcpy(push->inboxes, inbox->peers, sizeof(push->inboxes));
    return inbox->blocks < 1                   ? 1
           : inbox->blocks > HVD_KERNEL_BLOCKS ? HVD_KERNEL_BLOCKS
                                               : (uint32_t)inbox->blocks;
}
