/* SPDX-License-Identifier: Apache-2.0 */
/* Operations and collectives of the stand-in for NCCL. */
#include "tests/fake_gpu/fake_nccl.h"

#include <stdio.h>
#include <stdlib.h>

#include "gpu_binding/base/attr.h"

/* The calls of this thread since ncclGroupStart, all of one communicator. depth counts
 * nested groups. */
static _Thread_local int depth;
static _Thread_local struct fake_call *group;
static _Thread_local struct fake_call **group_end = NULL;

HVD_EXPORT const char *ncclGetErrorString(int result)
{
    return result == FAKE_SYSTEM_ERROR       ? "unhandled system error"
           : result == FAKE_INVALID_ARGUMENT ? "invalid argument"
                                             : "some error";
}

HVD_EXPORT const char *ncclGetLastError(struct fake_comm *comm)
{
    (void)comm;
    return "the last error, made up for a test";
}

/* --- operations --- */

static int add_scaled(struct fake_comm *comm, double factor, int *op)
{
    for (int i = 0; i < FAKE_MOST_SCALED; i++) {
        if (!comm->has_scaled[i]) {
            comm->has_scaled[i] = true;
            comm->scaled[i] = factor;
            *op = FAKE_SCALED + i;
            return FAKE_NCCL_SUCCESS;
        }
    }
    return FAKE_INVALID_ARGUMENT;
}

HVD_EXPORT int ncclRedOpCreatePreMulSum(int *op, void *scalar, int dtype, int residence,
                                        struct fake_comm *comm)
{
    if (fake_gpu_fails("ncclRedOpCreatePreMulSum")) {
        return FAKE_SYSTEM_ERROR;
    }
    if (!fake_comm_is_ready(comm) || residence != 1 || dtype < FAKE_FLOAT16 ||
        fake_nccl_version() < 21100) {
        return FAKE_INVALID_ARGUMENT;
    }
    return add_scaled(comm, fake_scalar(dtype, scalar), op);
}

HVD_EXPORT int ncclRedOpDestroy(int op, struct fake_comm *comm)
{
    if (!fake_comm_is_ready(comm) || op < FAKE_SCALED ||
        !comm->has_scaled[op - FAKE_SCALED]) {
        return FAKE_INVALID_ARGUMENT;
    }
    comm->has_scaled[op - FAKE_SCALED] = false;
    return fake_nccl_result("ncclRedOpDestroy");
}

/* --- calls --- */

HVD_EXPORT int ncclGroupStart(void)
{
    if (fake_gpu_fails("ncclGroupStart")) {
        return FAKE_SYSTEM_ERROR;
    }
    depth++;
    return FAKE_NCCL_SUCCESS;
}

static void drop_group(void)
{
    while (group != NULL) {
        struct fake_call *next = group->next;

        free(group);
        group = next;
    }
}

HVD_EXPORT int ncclGroupEnd(void)
{
    struct fake_call *calls = group;

    if (depth == 0 || --depth > 0) {
        return depth == 0 ? FAKE_INVALID_ARGUMENT : FAKE_NCCL_SUCCESS;
    }
    if (fake_gpu_fails("ncclGroupEnd")) {
        drop_group();
        return FAKE_SYSTEM_ERROR;
    }
    group = NULL;
    return calls != NULL ? fake_comm_launch(calls->comm, calls) : FAKE_NCCL_SUCCESS;
}

static bool is_known(const struct fake_call *wanted)
{
    if (wanted->dtype < 0 || wanted->dtype >= FAKE_DTYPES || wanted->op < 0) {
        return false;
    }
    if (fake_nccl_version() < 21000 &&
        (wanted->dtype == FAKE_BFLOAT16 || wanted->op == FAKE_AVG)) {
        return false;
    }
    if (wanted->kind == FAKE_ALL_REDUCE && wanted->op >= FAKE_SCALED &&
        fake_gpu_is_on_switch()) {
        /* a switch cannot scale, so NCCL would do this sum in a slower way: hvd must not
         * ask for it */
        return false;
    }
    return wanted->op < FAKE_SCALED || wanted->comm->has_scaled[wanted->op - FAKE_SCALED];
}

static int call(const char *function, struct fake_call wanted)
{
    struct fake_call *made;

    if (fake_nccl_result(function) != FAKE_NCCL_SUCCESS) {
        return FAKE_SYSTEM_ERROR;
    }
    if (!fake_comm_is_ready(wanted.comm) || !is_known(&wanted)) {
        return FAKE_INVALID_ARGUMENT;
    }
    if (fake_gpu_device_of(wanted.stream) != wanted.comm->device) {
        fprintf(stderr, "fake NCCL: %s on a stream of another device\n", function);
        return FAKE_SYSTEM_ERROR;
    }
    wanted.factor =
        wanted.op >= FAKE_SCALED ? wanted.comm->scaled[wanted.op - FAKE_SCALED] : 1.0;
    made = malloc(sizeof(*made));
    *made = wanted;
    if (depth == 0) {
        return fake_comm_launch(made->comm, made);
    }
    group_end = group == NULL ? &group : group_end;
    *group_end = made;
    group_end = &made->next;
    return FAKE_NCCL_SUCCESS;
}

HVD_EXPORT int ncclAllReduce(const void *from, void *to, size_t count, int dtype, int op,
                             struct fake_comm *comm, struct fake_stream *stream)
{
    return call("ncclAllReduce", (struct fake_call){.comm = comm,
                                                    .stream = stream,
                                                    .kind = FAKE_ALL_REDUCE,
                                                    .from = from,
                                                    .to = to,
                                                    .count = count,
                                                    .dtype = dtype,
                                                    .op = op});
}

HVD_EXPORT int ncclAllGather(const void *from, void *to, size_t count, int dtype,
                             struct fake_comm *comm, struct fake_stream *stream)
{
    return call("ncclAllGather", (struct fake_call){.comm = comm,
                                                    .stream = stream,
                                                    .kind = FAKE_ALL_GATHER,
                                                    .from = from,
                                                    .to = to,
                                                    .count = count,
                                                    .dtype = dtype});
}

HVD_EXPORT int ncclBroadcast(const void *from, void *to, size_t count, int dtype,
                             int root, struct fake_comm *comm, struct fake_stream *stream)
{
    return call("ncclBroadcast", (struct fake_call){.comm = comm,
                                                    .stream = stream,
                                                    .kind = FAKE_BROADCAST,
                                                    .from = from,
                                                    .to = to,
                                                    .count = count,
                                                    .dtype = dtype,
                                                    .peer = root});
}

HVD_EXPORT int ncclReduceScatter(const void *from, void *to, size_t count, int dtype,
                                 int op, struct fake_comm *comm,
                                 struct fake_stream *stream)
{
    return call("ncclReduceScatter", (struct fake_call){.comm = comm,
                                                        .stream = stream,
                                                        .kind = FAKE_REDUCE_SCATTER,
                                                        .from = from,
                                                        .to = to,
                                                        .count = count,
                                                        .dtype = dtype,
                                                        .op = op});
}

HVD_EXPORT int ncclReduce(const void *from, void *to, size_t count, int dtype, int op,
                          int root, struct fake_comm *comm, struct fake_stream *stream)
{
    return call("ncclReduce", (struct fake_call){.comm = comm,
                                                 .stream = stream,
                                                 .kind = FAKE_REDUCE,
                                                 .from = from,
                                                 .to = to,
                                                 .count = count,
                                                 .dtype = dtype,
                                                 .op = op,
                                                 .peer = root});
}

HVD_EXPORT int ncclSend(const void *from, size_t count, int dtype, int peer,
                        struct fake_comm *comm, struct fake_stream *stream)
{
    return call("ncclSend", (struct fake_call){.comm = comm,
                                               .stream = stream,
                                               .kind = FAKE_SEND,
                                               .from = from,
                                               .count = count,
                                               .dtype = dtype,
                                               .peer = peer});
}

HVD_EXPORT int ncclRecv(void *to, size_t count, int dtype, int peer,
                        struct fake_comm *comm, struct fake_stream *stream)
{
    return call("ncclRecv", (struct fake_call){.comm = comm,
                                               .stream = stream,
                                               .kind = FAKE_RECV,
                                               .to = to,
                                               .count = count,
                                               .dtype = dtype,
                                               .peer = peer});
}
