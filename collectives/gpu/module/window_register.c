/* SPDX-License-Identifier: Apache-2.0 */
/* Registers windows of NCCL. */
#include "collectives/gpu/module/device.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/error.h"

/* How long a registration may take, usually milliseconds: if it has failed early on
 * another rank, it does not end on this one. */
static const int64_t register_ns = 10000000000;

/* How often a wait for the device looks whether the job has been aborted. */
static const int look_ms = 100;

/* Waits for the work that is on the communicator's stream: an abort after a failed
 * registration must not cut it off. All ranks have launched it, so it ends. */
static int await_stream(struct hvd_gpu_comm *comm, struct hvd_error *err)
{
    int status;

    do {
        status = hvd_comm_settle(comm, look_ms, err);
        if (atomic_load(&comm->device->is_aborted)) {
            return hvd_fail(err, HVD_ERR_STATE, "the job has ended");
        }
    } while (status == HVD_INPROGRESS);
    return status;
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
