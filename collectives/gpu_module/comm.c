/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators of NCCL: made, looked after, ended. */
#include <stdlib.h>
#include <string.h>

#include "collectives/gpu_module/device.h"
#include "gpu_binding/env.h"
#include "gpu_binding/error.h"

static const struct hvd_nccl *find_nccl(struct hvd_gpu_device *device,
                                        struct hvd_gpu_library *found)
{
    if (device->nccl == NULL) {
        device->nccl = hvd_nccl_find(getenv(HVD_ENV_NCCL_LIBRARY), found);
    }
    return device->nccl;
}

int hvd_comm_identify(struct hvd_gpu_device *device, bool makes_id,
                      struct hvd_gpu_card *card, struct hvd_error *err)
{
    struct hvd_gpu_library found;
    const struct hvd_nccl *nccl = find_nccl(device, &found);
    ncclUniqueId id = {{0}};
    int result;

    *card = (struct hvd_gpu_card){0};
    result = device->cuda->device_uuid(card->uuid, device->number);
    if (result != CUDA_SUCCESS) {
        return hvd_cuda_fail(device->cuda, "cuDeviceGetUuid", result, err);
    }
    if (nccl == NULL) {
        return 0;
    }
    card->nccl_version = nccl->version;
    card->has_host_id = getenv(HVD_ENV_NCCL_HOSTID) != NULL ? 1 : 0;
    if (makes_id) {
        result = nccl->get_id(&id);
        if (result != NCCL_SUCCESS) {
            return hvd_nccl_fail(nccl, "ncclGetUniqueId", result, NULL, err);
        }
        memcpy(card->id, id.internal, sizeof(card->id));
    }
    return 0;
}

int hvd_comm_create(struct hvd_gpu_device *device, const unsigned char *id, int rank,
                    int size, struct hvd_gpu_comm **out, struct hvd_error *err)
{
    struct hvd_gpu_comm *comm = calloc(1, sizeof(*comm));

    if (comm == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a communicator");
    }
    comm->device = device;
    comm->rank = rank;
    comm->size = size;
    memcpy(comm->id.internal, id, sizeof(comm->id.internal));
    pthread_mutex_lock(&device->lock);
    comm->next = device->comms;
    device->comms = comm;
    pthread_mutex_unlock(&device->lock);
    *out = comm;
    return 0;
}

ncclComm_t hvd_comm_handle(struct hvd_gpu_comm *comm)
{
    ncclComm_t handle;

    pthread_mutex_lock(&comm->device->lock);
    handle = comm->handle;
    pthread_mutex_unlock(&comm->device->lock);
    return handle;
}

static ncclComm_t take_handle(struct hvd_gpu_comm *comm)
{
    ncclComm_t handle;

    pthread_mutex_lock(&comm->device->lock);
    handle = comm->handle;
    comm->handle = NULL;
    pthread_mutex_unlock(&comm->device->lock);
    return handle;
}

/* Waits for the other ranks. */
int hvd_comm_connect(struct hvd_gpu_comm *comm, struct hvd_error *err)
{
    struct hvd_gpu_device *device = comm->device;
    ncclComm_t handle = NULL;
    int result;

    if (comm->handle != NULL) {
        return 0;
    }
    result = device->nccl->init_rank(&handle, comm->size, comm->id, comm->rank);
    if (result != NCCL_SUCCESS) {
        return hvd_nccl_fail(device->nccl, "ncclCommInitRank", result, NULL, err);
    }
    pthread_mutex_lock(&device->lock);
    comm->handle = handle;
    pthread_mutex_unlock(&device->lock);
    if (atomic_load(&device->is_aborted)) {
        hvd_comm_abort(comm);
        return HVD_ERR_STATE;
    }
    return 0;
}

int hvd_comm_check(struct hvd_gpu_comm *comm, struct hvd_error *err)
{
    const struct hvd_nccl *nccl = comm->device->nccl;
    int later = NCCL_SUCCESS, result = NCCL_SUCCESS;

    pthread_mutex_lock(&comm->device->lock); /* nobody ends it meanwhile */
    if (comm->handle != NULL) {
        result = nccl->async_error(comm->handle, &later);
    }
    pthread_mutex_unlock(&comm->device->lock);
    if (result != NCCL_SUCCESS) {
        return hvd_nccl_fail(nccl, "ncclCommGetAsyncError", result, NULL, err);
    }
    return later == NCCL_SUCCESS || later == NCCL_IN_PROGRESS
               ? 0
               : hvd_nccl_fail(nccl, "a collective of NCCL", later, NULL, err);
}

void hvd_comm_abort(struct hvd_gpu_comm *comm)
{
    ncclComm_t handle = take_handle(comm);

    if (handle != NULL) {
        comm->device->nccl->abort(handle);
    }
}

void hvd_comm_end(struct hvd_gpu_comm *comm)
{
    ncclComm_t handle = take_handle(comm);

    if (handle == NULL) {
        return;
    }
    if (comm->has_scaled) {
        comm->device->nccl->op_destroy(comm->scaled_op, handle);
    }
    comm->device->nccl->destroy(handle);
}
