/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the steps of a work on its stream. */
#include "collectives/gpu/module/device.h"
#include "collectives/gpu/module/inbox.h"
#include "collectives/gpu/module/timing.h"
#include "gpu_binding/base/error.h"

/* ncclDataType_t of each type; -1: NCCL cannot reduce it. Other collectives move
 * bytes. */
static const int nccl_dtypes[HVD_DTYPE_COUNT] = {
    [HVD_INT8] = 0,    [HVD_UINT8] = 1,    [HVD_INT32] = 2,   [HVD_UINT32] = 3,
    [HVD_INT64] = 4,   [HVD_UINT64] = 5,   [HVD_FLOAT16] = 6, [HVD_FLOAT32] = 7,
    [HVD_FLOAT64] = 8, [HVD_BFLOAT16] = 9, [HVD_INT16] = -1,  [HVD_UINT16] = -1,
    [HVD_BOOL] = -1,
};

/* ncclRedOp_t of each operation; -1: NCCL lacks it. */
static const int nccl_ops[HVD_OP_COUNT] = {
    [HVD_SUM] = 0,   [HVD_PRODUCT] = 1, [HVD_MAX] = 2,
    [HVD_MIN] = 3,   [HVD_AVERAGE] = 4, [HVD_ADASUM] = -1,
    [HVD_BAND] = -1, [HVD_BOR] = -1,    [HVD_BXOR] = -1,
};

static const int host_immediate = 1; /* ncclScalarHostImmediate */

/* Rounds to nearest even. */
static uint16_t to_bfloat16(float value)
{
    union {
        float value;
        uint32_t bits;
    } both = {.value = value};

    return (uint16_t)((both.bits + 0x7fff + ((both.bits >> 16) & 1)) >> 16);
}

/* A factor in the type of the elements, as NCCL takes it. */
union scalar {
    uint16_t half;
    float single;
    double twice;
};

/* Rounds to nearest even. Values too small for a normal number become 0; too large ones
 * become infinite. */
static uint16_t to_float16(float value)
{
    union {
        float value;
        uint32_t bits;
    } both = {.value = value};
    uint32_t sign = (both.bits >> 16) & 0x8000;
    uint32_t magnitude = both.bits & 0x7fffffff;
    uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);

    if (rounded >= 0x47800000) {
        return (uint16_t)(sign | 0x7c00);
    }
    if (rounded < 0x38800000) {
        return (uint16_t)sign;
    }
    return (uint16_t)(sign | ((rounded - 0x38000000) >> 13));
}

static union scalar make_scalar(enum hvd_dtype dtype, double factor)
{
    union scalar scalar = {.twice = factor};

    if (dtype == HVD_FLOAT32) {
        scalar.single = (float)factor;
    } else if (dtype == HVD_FLOAT16) {
        scalar.half = to_float16((float)factor);
    } else if (dtype == HVD_BFLOAT16) {
        scalar.half = to_bfloat16((float)factor);
    }
    return scalar;
}

/* Returns NCCL's operation for a sum with a factor. Keeps the last operation, because a
 * training usually has a single factor. */
static int find_scaled_sum(struct hvd_gpu_comm *comm, const struct hvd_gpu_step *step,
                           int dtype, int *op, struct hvd_error *err)
{
    const struct hvd_nccl *nccl = comm->device->nccl;
    union scalar scalar = make_scalar(step->dtype, step->factor);
    int result;

    if (comm->has_scaled && comm->scaled_dtype == dtype &&
        comm->scaled_factor == step->factor) {
        *op = comm->scaled_op;
        return 0;
    }
    if (comm->has_scaled) {
        comm->has_scaled = false;
        nccl->op_destroy(comm->scaled_op, comm->handle);
    }
    if (nccl->scaled_sum_create == NULL) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "NCCL %d cannot apply a factor",
                        nccl->version);
    }
    result = nccl->scaled_sum_create(&comm->scaled_op, &scalar, dtype, host_immediate,
                                     comm->handle);
    if (result != NCCL_SUCCESS) {
        return hvd_nccl_fail(nccl, "ncclRedOpCreatePreMulSum", result, comm->handle, err);
    }
    comm->has_scaled = true;
    comm->scaled_dtype = dtype;
    comm->scaled_factor = step->factor;
    *op = comm->scaled_op;
    return 0;
}

static int find_op(struct hvd_gpu_comm *comm, const struct hvd_gpu_step *step, int dtype,
                   int *op, struct hvd_error *err)
{
    bool reduces = step->kind == HVD_GPU_ALLREDUCE || step->kind == HVD_GPU_REDUCE ||
                   step->kind == HVD_GPU_REDUCESCATTER;

    if (!reduces) {
        return 0;
    }
    if (step->op == HVD_SUM && step->factor != 1.0) {
        return find_scaled_sum(comm, step, dtype, op, err);
    }
    *op = nccl_ops[step->op];
    return 0;
}

static int call_nccl(const struct hvd_nccl *nccl, const struct hvd_gpu_step *step,
                     ncclComm_t comm, int op, CUstream stream, const char **function)
{
    const int dtype = nccl_dtypes[step->dtype];
    const size_t count = (size_t)step->count;

    switch (step->kind) {
    case HVD_GPU_ALLREDUCE:
        *function = "ncclAllReduce";
        return nccl->all_reduce(step->from, step->to, count, dtype, op, comm, stream);
    case HVD_GPU_ALLGATHER:
        *function = "ncclAllGather";
        return nccl->all_gather(step->from, step->to, count, dtype, comm, stream);
    case HVD_GPU_BROADCAST:
        *function = "ncclBroadcast";
        return nccl->broadcast(step->from, step->to, count, dtype, step->peer, comm,
                               stream);
    case HVD_GPU_REDUCESCATTER:
        *function = "ncclReduceScatter";
        return nccl->reduce_scatter(step->from, step->to, count, dtype, op, comm, stream);
    case HVD_GPU_REDUCE:
        *function = "ncclReduce";
        return nccl->reduce(step->from, step->to, count, dtype, op, step->peer, comm,
                            stream);
    case HVD_GPU_SEND:
        *function = "ncclSend";
        return nccl->send(step->from, count, dtype, step->peer, comm, stream);
    case HVD_GPU_RECV:
        *function = "ncclRecv";
        return nccl->recv(step->to, count, dtype, step->peer, comm, stream);
    case HVD_GPU_GROUP:
        *function = "ncclGroupStart";
        return nccl->group_start();
    default:
        *function = "ncclGroupEnd";
        return nccl->group_end();
    }
}

/* Whether the steps before `at` have begun a group and not ended it. */
static bool is_in_group(const struct hvd_gpu_work *work, int at)
{
    bool is_open = false;

    for (int i = 0; i < at; i++) {
        is_open = work->steps[i].kind == HVD_GPU_GROUP ||
                  (is_open && work->steps[i].kind != HVD_GPU_GROUP_END);
    }
    return is_open;
}

/* Waits until a step that NCCL has deferred is on the stream; only then may NCCL be
 * called again. Inside a group, steps are deferred until the end of the group. */
static int await_step(struct hvd_gpu_work *work, const struct hvd_gpu_step *step,
                      const char *function)
{
    if (step->kind != HVD_GPU_GROUP_END && is_in_group(work, (int)(step - work->steps))) {
        return 0;
    }
    return hvd_comm_await(work->comm, function, &work->error);
}

static int do_nccl(struct hvd_gpu_device *device, struct hvd_gpu_work *work,
                   const struct hvd_gpu_step *step)
{
    ncclComm_t comm = hvd_comm_handle(work->comm);
    const char *function;
    int op = 0, result, status;

    if (comm == NULL) {
        return hvd_fail(&work->error, HVD_ERR_STATE, "the job has ended");
    }
    status = find_op(work->comm, step, nccl_dtypes[step->dtype], &op, &work->error);
    if (status != 0) {
        return status;
    }
    result =
        call_nccl(device->nccl, step, comm, op, device->streams[work->queue], &function);
    if (result == NCCL_IN_PROGRESS) {
        return await_step(work, step, function);
    }
    return result == NCCL_SUCCESS
               ? 0
               : hvd_nccl_fail(device->nccl, function, result, comm, &work->error);
}

static int do_cuda(struct hvd_gpu_device *device, struct hvd_gpu_work *work,
                   const struct hvd_gpu_step *step)
{
    const struct hvd_cuda *cuda = device->cuda;
    CUstream stream = device->streams[work->queue];
    CUdeviceptr to = (CUdeviceptr)(uintptr_t)step->to;
    CUdeviceptr from = (CUdeviceptr)(uintptr_t)step->from;
    const char *function;
    int error;

    if (step->kind == HVD_GPU_FOLLOW) {
        function = "cuStreamWaitEvent";
        error = cuda->stream_wait(stream, hvd_event_handle(step->event), 0);
    } else if (step->kind == HVD_GPU_COPY) {
        function = "cuMemcpyAsync";
        error = cuda->copy(to, from, (size_t)step->count, stream);
    } else {
        function = "cuMemsetD8Async";
        error = cuda->set8(to, 0, (size_t)step->count, stream);
    }
    return error == CUDA_SUCCESS ? 0 : hvd_cuda_fail(cuda, function, error, &work->error);
}

/* Runs one or more steps from `step` on. Returns their number, or a failure. */
static int do_steps(struct hvd_gpu_device *device, struct hvd_gpu_work *work,
                    struct hvd_gpu_step *step)
{
    int status;

    switch (step->kind) {
    case HVD_GPU_FOLLOW:
    case HVD_GPU_COPY:
    case HVD_GPU_ZERO:
        status = do_cuda(device, work, step);
        break;
    case HVD_GPU_MOVE:
        return hvd_kernels_launch(&device->kernels, device->streams[work->queue], step,
                                  work->count - (int)(step - work->steps), &work->error);
    case HVD_GPU_POISON:
        return hvd_kernels_poison(&device->kernels, device->streams[work->queue], step,
                                  work->count - (int)(step - work->steps), &work->error);
    case HVD_GPU_SUM_UP:
        status = hvd_kernels_sum(&device->kernels, device->streams[work->queue], step,
                                 &work->error);
        break;
    case HVD_GPU_PUSH:
        return hvd_kernels_push(&device->kernels, device->streams[work->queue], step,
                                work->count - (int)(step - work->steps), &work->error);
    case HVD_GPU_REGISTER:
        status = hvd_window_register(step->to, &work->error);
        break;
    case HVD_GPU_ALLOCATE_INBOX:
        hvd_inbox_allocate(step->to, device->streams[work->queue]);
        return 1;
    case HVD_GPU_OPEN_INBOX:
        hvd_inbox_open(step->to);
        return 1;
    default:
        status = do_nccl(device, work, step);
    }
    return status != 0 ? status : 1;
}

/* Ends a group after a failure, so that it does not become part of the next one. After an
 * abort this is left out: ncclGroupEnd would access a freed communicator, and no other
 * group follows. */
static void leave_group(struct hvd_gpu_device *device, const struct hvd_gpu_work *work,
                        int at)
{
    if (is_in_group(work, at) && work->steps[at].kind != HVD_GPU_GROUP_END &&
        hvd_comm_handle(work->comm) != NULL) {
        device->nccl->group_end();
    }
}

int hvd_steps_run(struct hvd_gpu_device *device, struct hvd_gpu_work *work)
{
    int done;

    for (int i = 0; i < work->count; i += done) {
        hvd_timing_step(work, &work->steps[i]);
        done = do_steps(device, work, &work->steps[i]);
        if (done < 0) {
            leave_group(device, work, i);
            return done;
        }
    }
    hvd_timing_end(work);
    return hvd_event_record(work->done, device->streams[work->queue], &work->error);
}
