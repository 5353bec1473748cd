/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of NCCL's own that is registered with a communicator, all of it from its first byte on:
 * NCCL may then use it where it is, and let switches add it up. What all ranks have to do alike is
 * libhvd's business; nothing here waits for them. */
#include <stdlib.h>

#include "collectives/gpu/module/device.h"
#include "gpu_binding/base/error.h"

struct hvd_gpu_block {
    struct hvd_gpu_block *next;
    void *memory;
    void *handle; /* NULL: not registered any more */
};

bool hvd_nccl_registers(const struct hvd_nccl *nccl)
{
    return nccl->version >= NCCL_REGISTER_VERSION && nccl->mem_alloc != NULL &&
           nccl->mem_free != NULL && nccl->comm_register != NULL &&
           nccl->comm_deregister != NULL;
}

/* Of one that is registered NCCL returns a handle; none, and no failure, where the user has told it
 * to register nothing. */
static int register_memory(struct hvd_gpu_comm *comm, void *memory, size_t bytes,
                           void **handle, struct hvd_error *err)
{
    const struct hvd_nccl *nccl = comm->device->nccl;
    ncclComm_t nccl_comm = hvd_comm_handle(comm);
    int result;

    if (nccl_comm == NULL) {
        return hvd_fail(err, HVD_ERR_STATE, "the job has ended");
    }
    result = nccl->comm_register(nccl_comm, memory, bytes, handle);
    if (result != NCCL_SUCCESS) {
        return hvd_nccl_fail(nccl, "ncclCommRegister", result, nccl_comm, err);
    }
    return *handle != NULL ? 0
                           : hvd_fail(err, HVD_ERR_UNSUPPORTED,
                                      "NCCL registers no memory here "
                                      "(NCCL_LOCAL_REGISTER=0 forbids it)");
}

int hvd_comm_register(struct hvd_gpu_comm *comm, size_t bytes, void **memory,
                      struct hvd_error *err)
{
    const struct hvd_nccl *nccl = comm->device->nccl;
    struct hvd_gpu_block *block = calloc(1, sizeof(*block));
    int result, status;

    if (block == NULL || !hvd_nccl_registers(nccl)) {
        free(block);
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "NCCL %d registers no memory",
                        nccl->version);
    }
    result = nccl->mem_alloc(&block->memory, bytes);
    if (result != NCCL_SUCCESS) {
        free(block);
        return hvd_nccl_fail(nccl, "ncclMemAlloc", result, NULL, err);
    }
    status = register_memory(comm, block->memory, bytes, &block->handle, err);
    if (status != 0) {
        nccl->mem_free(block->memory);
        free(block);
        return status;
    }
    block->next = comm->blocks;
    comm->blocks = block;
    *memory = block->memory;
    return 0;
}

static bool deregister(struct hvd_gpu_comm *comm, ncclComm_t handle,
                       struct hvd_gpu_block *block)
{
    if (block->handle != NULL &&
        comm->device->nccl->comm_deregister(handle, block->handle) == NCCL_SUCCESS) {
        block->handle = NULL;
    }
    return block->handle == NULL;
}

void hvd_comm_unregister(struct hvd_gpu_comm *comm, const void *memory)
{
    struct hvd_gpu_block **at = &comm->blocks, *block;
    ncclComm_t handle = hvd_comm_handle(comm);

    while (*at != NULL && (*at)->memory != memory) {
        at = &(*at)->next;
    }
    block = *at;
    /* What NCCL does not let go of stays until the communicator ends. */
    if (block != NULL && handle != NULL && deregister(comm, handle, block) &&
        comm->device->nccl->mem_free(block->memory) == NCCL_SUCCESS) {
        *at = block->next;
        free(block);
    }
}

void hvd_comm_unregister_all(struct hvd_gpu_comm *comm, ncclComm_t handle)
{
    for (struct hvd_gpu_block *block = comm->blocks; block != NULL; block = block->next) {
        deregister(comm, handle, block);
    }
}

void hvd_comm_free_blocks(struct hvd_gpu_comm *comm)
{
    struct hvd_gpu_block *block;

    while ((block = comm->blocks) != NULL) {
        comm->blocks = block->next;
        comm->device->nccl->mem_free(block->memory);
        free(block);
    }
}
