/* SPDX-License-Identifier: Apache-2.0 */
/* oneCCL by the C interface that it has since 2022.0 (libccl.so.2), on CPUs. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "contrib/bench/hvd_bench/library_child/library.h"
#include "gpu_binding/base/error.h"

/* As its oneapi/ccl/v2/types.h numbers them. */
enum ccl_type {
    CCL_INT8 = 0,
    CCL_UINT8 = 1,
    CCL_INT32 = 2,
    CCL_UINT32 = 3,
    CCL_INT64 = 4,
    CCL_UINT64 = 5,
    CCL_FLOAT16 = 6,
    CCL_FLOAT32 = 7,
    CCL_FLOAT64 = 8,
    CCL_BFLOAT16 = 9,
    CCL_NO_TYPE = -1
};

enum ccl_op {
    CCL_SUM = 0,
    CCL_PRODUCT = 1,
    CCL_MAX = 2,
    CCL_MIN = 3,
    CCL_NO_OP = -1
};

struct ccl_id {
    char data[BENCH_GREETING];
};

typedef int ccl_reduces(const void *input, void *output, size_t count, int type, int op,
                        void *comm, void *stream);
typedef int ccl_moves(const void *input, void *output, size_t count, int type, void *comm,
                      void *stream);

static struct {
    const char *(*error)(int result);
    int (*make_id)(struct ccl_id *id);
    int (*join)(void **comm, size_t ranks, struct ccl_id id, int rank);
    int (*leave)(void *comm);
    ccl_reduces *allreduce, *reducescatter;
    ccl_moves *allgather, *alltoall;
    int (*broadcast)(const void *input, void *output, size_t count, int type, int root,
                     void *comm, void *stream);
} ccl;

static void *comm;
static int type, operation;

static int fail(const char *what, int result, struct hvd_error *err)
{
    return hvd_fail(err, HVD_ERR_UNSUPPORTED, "%s of oneCCL failed: %s", what,
                    ccl.error(result));
}

static int find_functions(void *handle, struct hvd_error *err)
{
    const struct {
        const char *name;
        void *where;
    } all[] = {
        {"onecclGetErrorString", &ccl.error},        {"onecclGetUniqueId", &ccl.make_id},
        {"onecclCommInitRank", &ccl.join},           {"onecclCommDestroy", &ccl.leave},
        {"onecclAllReduce", &ccl.allreduce},         {"onecclAllGather", &ccl.allgather},
        {"onecclAllToAll", &ccl.alltoall},           {"onecclBroadcast", &ccl.broadcast},
        {"onecclReduceScatter", &ccl.reducescatter},
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        void *function = dlsym(handle, all[i].name);

        if (function == NULL) {
            return hvd_fail(err, HVD_ERR_UNSUPPORTED, "%s", dlerror());
        }
        memcpy(all[i].where, &function, sizeof(function));
    }
    return 0;
}

/* path: the directory where pip has put it, on the loader's path, too: its parts look for each other
 * by their names. */
static int load(const char *path, struct hvd_error *err)
{
    char providers[PATH_MAX];
    void *handle = dlopen("libccl.so.2", RTLD_NOW | RTLD_GLOBAL);

    if (path != NULL) {
        snprintf(providers, sizeof(providers), "%s/lib", path);
        setenv("FI_PROVIDER_PATH", providers, 0);
    }
    return handle != NULL
               ? find_functions(handle, err)
               : hvd_fail(err, HVD_ERR_UNSUPPORTED,
                          "%s; say oneccl=DIRECTORY, the Python environment that has it",
                          dlerror());
}

/* What makes it fast on CPUs, unless the user knows better: shared memory within a node, and the
 * caller drives, as no thread has a core of its own. Read when the first call is made. */
static void set_environment(const struct bench_seat *seat)
{
    const char *interface = getenv("GLOO_SOCKET_IFNAME");
    char rank[16], size[16];

    snprintf(rank, sizeof(rank), "%d", seat->local_rank);
    snprintf(size, sizeof(size), "%d", seat->local_size);
    setenv("CCL_PLUGIN", "ONECCL_LEGACY_CPU", 0);
    setenv("CCL_ATL_TRANSPORT", "ofi", 0);
    setenv("CCL_ATL_SHM", "1", 0);
    setenv("CCL_WORKER_OFFLOAD", "0", 0);
    setenv("CCL_LOG_LEVEL", "error", 0);
    setenv("CCL_PROCESS_LAUNCHER", "none", 1);
    setenv("CCL_LOCAL_RANK", rank, 1);
    setenv("CCL_LOCAL_SIZE", size, 1);
    if (interface != NULL && strcmp(interface, "lo") != 0) {
        setenv("CCL_KVS_IFACE", interface, 0);
        setenv("FI_TCP_IFACE", interface, 0);
    }
}

static int greet(const struct bench_seat *seat, char *greeting, struct hvd_error *err)
{
    struct ccl_id id = {0};
    int result;

    set_environment(seat);
    result = ccl.make_id(&id);
    memcpy(greeting, id.data, sizeof(id.data));
    return result == 0 ? 0 : fail("onecclGetUniqueId", result, err);
}

static int join(const struct bench_seat *seat, const char *greeting,
                struct hvd_error *err)
{
    struct ccl_id id;
    int result;

    set_environment(seat);
    memcpy(id.data, greeting, sizeof(id.data));
    result = ccl.join(&comm, (size_t)seat->size, id, seat->rank);
    return result == 0 ? 0 : fail("onecclCommInitRank", result, err);
}

static void leave(void)
{
    if (comm != NULL) {
        ccl.leave(comm);
    }
}

static int type_of(enum hvd_dtype dtype)
{
    switch (dtype) {
    case HVD_INT8:
        return CCL_INT8;
    case HVD_UINT8:
        return CCL_UINT8;
    case HVD_INT32:
        return CCL_INT32;
    case HVD_UINT32:
        return CCL_UINT32;
    case HVD_INT64:
        return CCL_INT64;
    case HVD_UINT64:
        return CCL_UINT64;
    case HVD_FLOAT16:
        return CCL_FLOAT16;
    case HVD_FLOAT32:
        return CCL_FLOAT32;
    case HVD_FLOAT64:
        return CCL_FLOAT64;
    case HVD_BFLOAT16:
        return CCL_BFLOAT16;
    default:
        return CCL_NO_TYPE;
    }
}

static int op_of(enum hvd_op op)
{
    switch (op) {
    case HVD_SUM:
        return CCL_SUM;
    case HVD_PRODUCT:
        return CCL_PRODUCT;
    case HVD_MAX:
        return CCL_MAX;
    case HVD_MIN:
        return CCL_MIN;
    default:
        return CCL_NO_OP;
    }
}

static int prepare(const struct bench_work *work, struct hvd_error *err)
{
    bool reduces = bench_collective_reduces(work->collective);

    if (work->collective >= BENCH_REDUCE) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "its %s is not measured",
                        bench_collective_name(work->collective));
    }
    type = type_of(work->dtype);
    operation = op_of(work->op);
    if (type == CCL_NO_TYPE) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED, "oneCCL has no such data type");
    }
    return operation != CCL_NO_OP || !reduces
               ? 0
               : hvd_fail(err, HVD_ERR_UNSUPPORTED, "its average is not measured");
}

/* One tensor of an allreduce or broadcast. */
static int run_tensor(const struct bench_work *work, int tensor)
{
    size_t offset = (size_t)work->places[tensor] * work->element;
    size_t count = (size_t)work->counts[tensor];
    const char *input = work->input + offset;
    char *output = work->output + offset;

    if (work->collective == BENCH_BROADCAST) {
        return ccl.broadcast(input, output, count, type, 0, comm, NULL);
    }
    return ccl.allreduce(input, output, count, type, operation, comm, NULL);
}

static int run(const struct bench_work *work)
{
    size_t share = (size_t)(work->input_count / work->size);
    int result = 0;

    switch (work->collective) {
    case BENCH_ALLGATHER:
        return ccl.allgather(work->input, work->output, (size_t)work->input_count, type,
                             comm, NULL);
    case BENCH_ALLTOALL:
        return ccl.alltoall(work->input, work->output, share, type, comm, NULL);
    case BENCH_REDUCESCATTER:
        return ccl.reducescatter(work->input, work->output, share, type, operation, comm,
                                 NULL);
    default:
        for (int i = 0; i < work->tensors && result == 0; i++) {
            result = run_tensor(work, i);
        }
        return result;
    }
}

const struct bench_library bench_library_oneccl = {
    .name = "oneccl",
    .load = load,
    .greet = greet,
    .join = join,
    .leave = leave,
    .prepare = prepare,
    .run = run,
};
