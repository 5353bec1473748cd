/* SPDX-License-Identifier: Apache-2.0 */
/* The life of an NCCL communicator: identify, connect, check, abort, destroy. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectives/gpu/module/device.h"
#include "collectives/gpu/module/inbox.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/error.h"

static const unsigned config_magic = 0xcafebeef; /* NCCL_API_MAGIC */

/* How long the end of a communicator with windows may wait for the device: less than
 * libhvd waits for the launcher. */
static const int settle_ms = 3000;

static const struct hvd_nccl *find_nccl(struct hvd_gpu_device *device,
                                        struct hvd_gpu_library *found)
{
    if (device->nccl == NULL) {
        device->nccl = hvd_nccl_find(getenv(HVD_ENV_NCCL_LIBRARY), found);
    }
    return device->nccl;
}

/* Makes an NCCL id. Enters the device's context, because without a current context NCCL
 * 2.10 to 2.16 creates one on GPU 0. */
static int make_id(struct hvd_gpu_device *device, ncclUniqueId *id, struct hvd_error *err)
{
    int status = hvd_device_enter(device, err);
    int result;

    if (status != 0) {
        return status;
    }
    result = device->nccl->get_id(id);
    hvd_device_leave(device);
    return result == NCCL_SUCCESS
               ? 0
               : hvd_nccl_fail(device->nccl, "ncclGetUniqueId", result, NULL, err);
}

static int name_device(const struct hvd_gpu_device *device,
                       struct hvd_gpu_identity *identity, struct hvd_error *err)
{
    int error;

    *identity = (struct hvd_gpu_identity){0};
    error = device->cuda->device_uuid(identity->uuid, device->number);
    if (error != CUDA_SUCCESS) {
        return hvd_cuda_fail(device->cuda, "cuDeviceGetUuid", error, err);
    }
    error = device->cuda->device_bus_id(identity->bus_id, sizeof(identity->bus_id),
                                        device->number);
    return error == CUDA_SUCCESS
               ? 0
               : hvd_cuda_fail(device->cuda, "cuDeviceGetPCIBusId", error, err);
}

/* Reads the variable as NCCL does: any number but 0. */
static bool may_share(const struct hvd_nccl *nccl)
{
    const char *text = getenv(HVD_ENV_NCCL_MULTI_RANK_GPU);

    return nccl->version >= NCCL_SHARED_GPU_VERSION && text != NULL &&
           strtoll(text, NULL, 0) != 0;
}

int hvd_comm_identify(struct hvd_gpu_device *device, bool makes_id,
                      struct hvd_gpu_identity *identity, struct hvd_error *err)
{
    struct hvd_gpu_library found;
    const struct hvd_nccl *nccl = find_nccl(device, &found);
    ncclUniqueId id = {{0}};
    int status;

    status = name_device(device, identity, err);
    if (status != 0) {
        return status;
    }
    identity->has_dma_buf = hvd_links_has_dma_buf(device);
    identity->is_on_switch = hvd_links_is_on_switch(device);
    identity->orders_writes = hvd_links_orders_writes(device);
    identity->has_kernels = device->kernels.problem[0] == '\0' ? 1 : 0;
    if (nccl == NULL) {
        return 0;
    }
    identity->nccl_version = nccl->version;
    identity->has_host_id = getenv(HVD_ENV_NCCL_HOSTID) != NULL ? 1 : 0;
    identity->may_share = may_share(nccl) ? 1 : 0;
    if (makes_id) {
        status = make_id(device, &id, err);
        if (status != 0) {
            return status;
        }
        memcpy(identity->id, id.internal, sizeof(identity->id));
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

/* Asks NCCL for the state of the communicator. *state is NCCL_SUCCESS for one that
 * is not connected. */
static int ask_state(struct hvd_gpu_comm *comm, int *state, struct hvd_error *err)
{
    const struct hvd_nccl *nccl = comm->device->nccl;
    int result = NCCL_SUCCESS;

    *state = NCCL_SUCCESS;
    /* keeps other threads from ending the communicator meanwhile */
    pthread_mutex_lock(&comm->device->lock);
    if (comm->handle != NULL) {
        result = nccl->async_error(comm->handle, state);
    }
    pthread_mutex_unlock(&comm->device->lock);
    return result == NCCL_SUCCESS
               ? 0
               : hvd_nccl_fail(nccl, "ncclCommGetAsyncError", result, NULL, err);
}

int hvd_comm_check(struct hvd_gpu_comm *comm, struct hvd_error *err)
{
    struct hvd_gpu_device *device = comm->device;
    struct hvd_error found;

    pthread_mutex_lock(&device->lock);
    found = comm->found;
    if (!comm->wants_look && found.status == 0) {
        comm->wants_look = true;
        device->looks++;
        pthread_cond_broadcast(&device->changed);
    }
    pthread_mutex_unlock(&device->lock);
    return found.status == 0 ? 0 : hvd_fail(err, found.status, "%s", found.text);
}

void hvd_comm_look(struct hvd_gpu_comm *comm)
{
    const struct hvd_nccl *nccl = comm->device->nccl;
    int state = NCCL_SUCCESS, result = NCCL_SUCCESS;

    comm->device->looks -= comm->wants_look ? 1 : 0;
    comm->wants_look = false;
    if (comm->handle != NULL) {
        result = nccl->async_error(comm->handle, &state);
    }
    if (result != NCCL_SUCCESS) {
        hvd_nccl_fail(nccl, "ncclCommGetAsyncError", result, NULL, &comm->found);
    } else if (state != NCCL_SUCCESS && state != NCCL_IN_PROGRESS) {
        hvd_nccl_fail(nccl, "a collective of NCCL", state, NULL, &comm->found);
    }
}

/* Pauses between two polls, longer and longer: a launch takes microseconds, a connection
 * may take seconds. */
static void pause_between(int turn)
{
    const struct timespec moment = {.tv_nsec = turn < 2000 ? 20000 : 1000000};

    if (turn < 200) {
        sched_yield();
    } else {
        nanosleep(&moment, NULL);
    }
}

int hvd_comm_await(struct hvd_gpu_comm *comm, const char *function, struct hvd_error *err)
{
    return hvd_comm_await_until(comm, function, INT64_MAX, err);
}

int hvd_comm_await_until(struct hvd_gpu_comm *comm, const char *function, int64_t end_ns,
                         struct hvd_error *err)
{
    int state = NCCL_IN_PROGRESS;

    for (int turn = 0; state == NCCL_IN_PROGRESS; turn += turn < 2000) {
        int status = ask_state(comm, &state, err);

        if (status != 0) {
            return status;
        }
        /* NCCL 2.14 must be aborted by the thread that began the call. */
        if (atomic_load(&comm->device->is_aborted)) {
            hvd_comm_abort(comm);
            return hvd_fail(err, HVD_ERR_STATE, "the job has ended");
        }
        if (state == NCCL_IN_PROGRESS && end_ns < INT64_MAX && hvd_clock_ns() > end_ns) {
            return hvd_fail(err, HVD_ERR_TIMEOUT,
                            "%s has not ended in time, perhaps because it has failed on "
                            "another rank",
                            function);
        }
        if (state == NCCL_IN_PROGRESS) {
            pause_between(turn);
        }
    }
    return state == NCCL_SUCCESS
               ? 0
               : hvd_nccl_fail(comm->device->nccl, function, state, NULL, err);
}

/* Starts to connect; does not wait for other ranks if this NCCL can avoid it. Returns
 * NCCL's result. */
static int begin_connecting(struct hvd_gpu_comm *comm, const char **function)
{
    const struct hvd_nccl *nccl = comm->device->nccl;
    bool blocks = !hvd_nccl_may_not_block(nccl);
    ncclComm_t handle = NULL;
    int result;

    comm->config = (struct hvd_nccl_config){.size = sizeof(comm->config),
                                            .magic = config_magic,
                                            .version = NCCL_CONFIG_VERSION,
                                            .blocking = 0};
    *function = blocks ? "ncclCommInitRank" : "ncclCommInitRankConfig";
    result = blocks ? nccl->init_rank(&handle, comm->size, comm->id, comm->rank)
                    : nccl->init_config(&handle, comm->size, comm->id, comm->rank,
                                        &comm->config);
    pthread_mutex_lock(&comm->device->lock);
    comm->handle = handle;
    comm->is_patient = result == NCCL_IN_PROGRESS && nccl->finalize != NULL;
    /* From this version on, ending a blocking communicator waits for other ranks.
     * NCCL_COMM_BLOCKING=1 makes it block in spite of the config. */
    comm->waits_to_end = nccl->version >= NCCL_CONFIG_VERSION && !comm->is_patient;
    pthread_mutex_unlock(&comm->device->lock);
    return result;
}

int hvd_comm_connect(struct hvd_gpu_comm *comm, struct hvd_error *err)
{
    const char *function;
    int result, status;

    if (comm->handle != NULL) {
        return 0;
    }
    result = begin_connecting(comm, &function);
    status = result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS
                 ? hvd_comm_await(comm, function, err)
                 : hvd_nccl_fail(comm->device->nccl, function, result, NULL, err);
    if (status != 0) {
        hvd_comm_abort(comm);
    }
    return status;
}

int hvd_comm_settle(struct hvd_gpu_comm *comm, int ms, struct hvd_error *err)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    const int64_t end_ns = hvd_clock_ns() + ms * INT64_C(1000000);
    CUstream stream = comm->device->streams[comm->queue];
    struct hvd_gpu_event *event = NULL;
    int status = hvd_event_create(comm->device, &event, err);

    if (status == 0) {
        status = hvd_event_record(event, stream, err);
    }
    if (status == 0) {
        status = hvd_event_test(event, err);
    }
    while (status == HVD_INPROGRESS && hvd_clock_ns() < end_ns) {
        nanosleep(&moment, NULL);
        status = hvd_event_test(event, err);
    }
    hvd_event_destroy(event);
    return status;
}

void hvd_comm_abort(struct hvd_gpu_comm *comm)
{
    ncclComm_t handle = take_handle(comm);

    if (handle != NULL) {
        comm->device->nccl->abort(handle);
    }
}

static void release_handle(struct hvd_gpu_comm *comm, ncclComm_t handle)
{
    const struct hvd_nccl *nccl = comm->device->nccl;

    if (comm->has_scaled) {
        comm->has_scaled = false;
        nccl->op_destroy(comm->scaled_op, handle);
    }
    hvd_window_deregister_all(comm, handle);
}

/* Like hvd_comm_end, but does not wait for other ranks. Returns HVD_INPROGRESS until the
 * communicator has ended. After a failure it still exists, unless it was aborted. */
static int finish_comm(struct hvd_gpu_comm *comm)
{
    const struct hvd_nccl *nccl = comm->device->nccl;
    ncclComm_t handle = hvd_comm_handle(comm);
    int state = NCCL_SUCCESS, status;

    if (handle == NULL) {
        return 0;
    }
    if (comm->waits_to_end) {
        return HVD_ERR_UNSUPPORTED; /* the communicator ends with the device */
    }
    status = ask_state(comm, &state, NULL);
    if (status != 0 || state == NCCL_IN_PROGRESS) {
        return status != 0 ? status : HVD_INPROGRESS;
    }
    if (state == NCCL_SUCCESS && !comm->is_finalized && comm->is_patient) {
        release_handle(comm, handle);
        comm->is_finalized = true;
        state = nccl->finalize(handle);
        return state == NCCL_SUCCESS || state == NCCL_IN_PROGRESS ? HVD_INPROGRESS
                                                                  : HVD_ERR_SYS;
    }
    hvd_comm_end(comm);
    return 0;
}

void hvd_comm_limit_ends(struct hvd_gpu_device *device)
{
    device->settle_end_ns = hvd_clock_ns() + settle_ms * INT64_C(1000000);
}

/* Returns how long the end of a communicator may wait for the device. */
static int settle_left_ms(const struct hvd_gpu_device *device)
{
    const int64_t left_ns = device->settle_end_ns - hvd_clock_ns();

    if (device->settle_end_ns == 0) {
        return settle_ms;
    }
    return left_ns > 0 ? (int)(left_ns / 1000000) : 0;
}

void hvd_comm_end(struct hvd_gpu_comm *comm)
{
    const struct hvd_nccl *nccl = comm->device->nccl;
    ncclComm_t handle = take_handle(comm);
    int state = NCCL_SUCCESS;

    if (handle == NULL) {
        return;
    }
    /* NCCL refuses to destroy a communicator that has failed or is busy. */
    if (nccl->async_error(handle, &state) != NCCL_SUCCESS || state != NCCL_SUCCESS ||
        (comm->windows != NULL && !comm->is_finalized &&
         hvd_comm_settle(comm, settle_left_ms(comm->device), NULL) != 0)) {
        nccl->abort(handle);
        return;
    }
    release_handle(comm, handle);
    nccl->destroy(handle);
}

/* --- communicators that end before their device ---
 *
 * No step here may wait for another rank: that rank may be waiting for this one in a
 * collective that only this launcher can start. */

void hvd_comm_destroy(struct hvd_gpu_comm *comm)
{
    struct hvd_gpu_device *device = comm->device;

    pthread_mutex_lock(&device->lock);
    comm->is_leaving = true;
    device->leaving++;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
}

void hvd_comm_abandon(struct hvd_gpu_comm *comm)
{
    comm->is_abandoned = true;
    hvd_comm_destroy(comm);
}

/* Tests whether the device has completed all work on the communicator's stream; returns
 * the same as hvd_event_test. */
static int test_use(struct hvd_gpu_comm *comm)
{
    struct hvd_gpu_device *device = comm->device;
    int status;

    if (comm->last_use == NULL) {
        status = hvd_event_create(device, &comm->last_use, NULL);
        if (status == 0) {
            status = hvd_event_record(comm->last_use, device->streams[comm->queue], NULL);
        }
        if (status != 0) {
            return status;
        }
    }
    return hvd_event_test(comm->last_use, NULL);
}

static void retire_windows(struct hvd_gpu_comm *comm)
{
    struct hvd_gpu_device *device = comm->device;
    struct hvd_gpu_window *windows;

    pthread_mutex_lock(&device->lock);
    windows = comm->windows;
    comm->windows = NULL;
    pthread_mutex_unlock(&device->lock);
    hvd_device_retire(device, windows, NULL);
}

bool hvd_comm_leave(struct hvd_gpu_comm *comm)
{
    int status = hvd_comm_handle(comm) == NULL ? 0 : test_use(comm);
    const bool is_unused = status == 0;

    if (is_unused && comm->is_abandoned) {
        hvd_comm_abort(comm);
    } else if (is_unused) {
        status = finish_comm(comm);
    }
    if (status == HVD_INPROGRESS) {
        return false;
    }
    /* After an abort, the device may still use this memory; see hvd_device_close. Windows
     * belong to NCCL's communicator, which may still exist; inboxes do not. */
    if (status == 0 && !atomic_load(&comm->device->is_aborted)) {
        retire_windows(comm);
    }
    if (is_unused && !atomic_load(&comm->device->is_aborted)) {
        hvd_device_retire(comm->device, NULL, comm->inbox);
        comm->inbox = NULL;
    }
    hvd_event_destroy(comm->last_use);
    comm->last_use = NULL;
    /* After a failure the communicator ends with the device. */
    comm->has_left = true;
    return status == 0 && comm->windows == NULL && comm->inbox == NULL;
}
