/* SPDX-License-Identifier: Apache-2.0 */
/* Inboxes: memory of CUDA that the other ranks of a node open by its handle. */
#include "collectives/gpu/module/inbox.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/gpu/module/device.h"
#include "gpu_binding/base/error.h"

int hvd_inbox_create(struct hvd_gpu_comm *comm, size_t slot_bytes,
                     struct hvd_gpu_inbox **out, struct hvd_error *err)
{
    struct hvd_gpu_inbox *inbox;

    if (comm->device->kernels.aborted == NULL) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "there is no pinned memory by which to stop a kernel");
    }
    inbox = calloc(1, sizeof(*inbox));
    if (inbox == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for an inbox");
    }
    inbox->comm = comm;
    inbox->slot_bytes = slot_bytes;
    comm->inbox = inbox;
    *out = inbox;
    return 0;
}

/* The driver takes memory of its own for it: a handle is for a whole allocation. Returns
 * an error of CUDA. */
static int allocate(struct hvd_gpu_inbox *inbox, CUstream stream, const char **function)
{
    const struct hvd_gpu_comm *comm = inbox->comm;
    const struct hvd_cuda *cuda = comm->device->cuda;
    struct hvd_cuda_handle ipc;
    CUdeviceptr address = 0;
    int error;

    *function = "cuMemAlloc";
    error = cuda->mem_alloc(&address, HVD_KERNEL_HEAD_BYTES +
                                          2 * (size_t)comm->size * inbox->slot_bytes);
    if (error != CUDA_SUCCESS) {
        return error;
    }
    inbox->memory = inbox->peers[comm->rank] = (char *)(uintptr_t)address;
    *function = "cuIpcGetMemHandle";
    error = cuda->ipc_get(&ipc, address);
    if (error != CUDA_SUCCESS) {
        return error;
    }
    memcpy(inbox->handles[comm->rank], &ipc, sizeof(ipc));
    if (cuda->device_attribute(&inbox->blocks, CU_DEVICE_MULTIPROCESSORS,
                               comm->device->number) != CUDA_SUCCESS) {
        inbox->blocks = 1;
    }
    *function = "cuMemsetD8Async";
    return cuda->set8(address, 0, HVD_KERNEL_HEAD_BYTES, stream);
}

static void set_outcome(struct hvd_gpu_inbox *inbox, const char *function, int error)
{
    inbox->error = (struct hvd_error){0};
    if (error != CUDA_SUCCESS) {
        hvd_cuda_fail(inbox->comm->device->cuda, function, error, &inbox->error);
    }
}

void hvd_inbox_allocate(struct hvd_gpu_inbox *inbox, CUstream stream)
{
    const char *function;
    int error = allocate(inbox, stream, &function);

    set_outcome(inbox, function, error);
}

void hvd_inbox_open(struct hvd_gpu_inbox *inbox)
{
    const struct hvd_gpu_comm *comm = inbox->comm;
    int error = CUDA_SUCCESS;

    inbox->is_shared = true;
    for (int i = 0; i < comm->size && error == CUDA_SUCCESS; i++) {
        struct hvd_cuda_handle ipc;
        CUdeviceptr address = 0;

        if (i != comm->rank) {
            memcpy(&ipc, inbox->handles[i], sizeof(ipc));
            error = comm->device->cuda->ipc_open(&address, ipc, CU_IPC_LAZY_PEER_ACCESS);
            inbox->peers[i] = (char *)(uintptr_t)address;
        }
    }
    set_outcome(inbox, "cuIpcOpenMemHandle", error);
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
