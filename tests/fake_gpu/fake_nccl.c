/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for NCCL: its functions. */
#include "tests/fake_gpu/fake_nccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu_binding/attr.h"

/* ncclResult_t */
enum {
    SUCCESS = 0,
    SYSTEM_ERROR = 2,
    INVALID_ARGUMENT = 4,
};

struct id {
    char name[128];
};

/* Between ncclGroupStart and ncclGroupEnd: what was called, of one communicator. */
static _Thread_local int depth;
static _Thread_local struct fake_call *group;
static _Thread_local struct fake_call **group_end = NULL;

static int version(void)
{
    const char *text = getenv("FAKE_NCCL_VERSION");

    return text != NULL ? atoi(text) : 21803;
}

static int fails(const char *function)
{
    return fake_gpu_fails(function) ? SYSTEM_ERROR : SUCCESS;
}

HVD_EXPORT int ncclGetVersion(int *out)
{
    *out = version();
    return fails("ncclGetVersion");
}

HVD_EXPORT int ncclGetUniqueId(struct id *id)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    memset(id, 0, sizeof(*id));
    snprintf(id->name, sizeof(id->name), "/fake_nccl_%d_%lx%lx", (int)getpid(),
             (unsigned long)now.tv_sec, (unsigned long)now.tv_nsec);
    return fails("ncclGetUniqueId");
}

HVD_EXPORT const char *ncclGetErrorString(int result)
{
    return result == SYSTEM_ERROR       ? "unhandled system error"
           : result == INVALID_ARGUMENT ? "invalid argument"
                                        : "some error";
}

HVD_EXPORT const char *ncclGetLastError(struct fake_comm *comm)
{
    (void)comm;
    return "the last error, made up for a test";
}

HVD_EXPORT int ncclCommInitRank(struct fake_comm **out, int size, struct id id, int rank)
{
    struct fake_comm *comm;

    if (fake_gpu_fails("ncclCommInitRank")) {
        return SYSTEM_ERROR;
    }
    comm = calloc(1, sizeof(*comm));
    if (comm == NULL || fake_link_open(&comm->link, id.name, rank, size) != 0) {
        free(comm);
        return SYSTEM_ERROR;
    }
    fake_gpu_count_comm(1);
    *out = comm;
    return SUCCESS;
}

static void end_comm(struct fake_comm *comm)
{
    for (unsigned turn = 0; atomic_load(&comm->under_way) > 0; turn++) {
        fake_link_pause(turn);
    }
    fake_link_close(&comm->link);
    free(comm);
    fake_gpu_count_comm(-1);
}

HVD_EXPORT int ncclCommDestroy(struct fake_comm *comm)
{
    end_comm(comm);
    return fails("ncclCommDestroy");
}

HVD_EXPORT int ncclCommAbort(struct fake_comm *comm)
{
    atomic_store(&comm->link.is_aborted, true);
    end_comm(comm);
    return fails("ncclCommAbort");
}

HVD_EXPORT int ncclCommGetAsyncError(struct fake_comm *comm, int *result)
{
    *result = atomic_load(&comm->error);
    return fails("ncclCommGetAsyncError");
}

/* --- operations --- */

static int add_scaled(struct fake_comm *comm, double factor, int *op)
{
    for (int i = 0; i < FAKE_MOST_SCALED; i++) {
        if (!comm->has_scaled[i]) {
            comm->has_scaled[i] = true;
            comm->scaled[i] = factor;
            *op = FAKE_SCALED + i;
            return SUCCESS;
        }
    }
    return INVALID_ARGUMENT;
}

HVD_EXPORT int ncclRedOpCreatePreMulSum(int *op, void *scalar, int dtype, int residence,
                                        struct fake_comm *comm)
{
    if (fake_gpu_fails("ncclRedOpCreatePreMulSum")) {
        return SYSTEM_ERROR;
    }
    if (residence != 1 || dtype < FAKE_FLOAT16 || version() < 21100) {
        return INVALID_ARGUMENT;
    }
    return add_scaled(comm, fake_scalar(dtype, scalar), op);
}

HVD_EXPORT int ncclRedOpDestroy(int op, struct fake_comm *comm)
{
    if (op < FAKE_SCALED || !comm->has_scaled[op - FAKE_SCALED]) {
        return INVALID_ARGUMENT;
    }
    comm->has_scaled[op - FAKE_SCALED] = false;
    return fails("ncclRedOpDestroy");
}

/* --- calls --- */

static int launch(struct fake_call *calls)
{
    if (calls != NULL) {
        atomic_fetch_add(&calls->comm->under_way, 1);
        fake_gpu_enqueue(calls->stream, fake_calls_run, calls);
    }
    return SUCCESS;
}

HVD_EXPORT int ncclGroupStart(void)
{
    if (fake_gpu_fails("ncclGroupStart")) {
        return SYSTEM_ERROR;
    }
    depth++;
    return SUCCESS;
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
        return depth == 0 ? INVALID_ARGUMENT : SUCCESS;
    }
    if (fake_gpu_fails("ncclGroupEnd")) {
        drop_group();
        return SYSTEM_ERROR;
    }
    group = NULL;
    return launch(calls);
}

static bool is_known(const struct fake_call *wanted)
{
    if (wanted->dtype < 0 || wanted->dtype >= FAKE_DTYPES || wanted->op < 0) {
        return false;
    }
    if (version() < 21000 && (wanted->dtype == FAKE_BFLOAT16 || wanted->op == FAKE_AVG)) {
        return false;
    }
    return wanted->op < FAKE_SCALED || wanted->comm->has_scaled[wanted->op - FAKE_SCALED];
}

static int call(const char *function, struct fake_call wanted)
{
    struct fake_call *made;

    if (fake_gpu_fails(function)) {
        return SYSTEM_ERROR;
    }
    if (!is_known(&wanted)) {
        return INVALID_ARGUMENT;
    }
    wanted.factor =
        wanted.op >= FAKE_SCALED ? wanted.comm->scaled[wanted.op - FAKE_SCALED] : 1.0;
    made = malloc(sizeof(*made));
    *made = wanted;
    if (depth == 0) {
        return launch(made);
    }
    group_end = group == NULL ? &group : group_end;
    *group_end = made;
    group_end = &made->next;
    return SUCCESS;
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
