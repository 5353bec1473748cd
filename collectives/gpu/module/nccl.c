/* SPDX-License-Identifier: Apache-2.0 */
/* Finds NCCL at run time and turns its errors into messages. */
#include "collectives/gpu/module/nccl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "collectives/gpu/module/hints.h"
#include "gpu_binding/base/error.h"

#define NEEDED(member, name)                                                             \
    {                                                                                    \
        name, NULL, offsetof(struct hvd_nccl, member), false                             \
    }
#define NEWER(member, name)                                                              \
    {                                                                                    \
        name, NULL, offsetof(struct hvd_nccl, member), true                              \
    }

static const struct hvd_library_symbol symbols[] = {
    /* must be the first: find_nccl checks the version before it binds the others */
    NEEDED(get_version, "ncclGetVersion"),
    NEEDED(get_id, "ncclGetUniqueId"),
    NEEDED(error_string, "ncclGetErrorString"),
    NEWER(last_error, "ncclGetLastError"),
    NEEDED(init_rank, "ncclCommInitRank"),
    NEWER(init_config, "ncclCommInitRankConfig"),
    NEWER(finalize, "ncclCommFinalize"),
    NEEDED(destroy, "ncclCommDestroy"),
    NEEDED(abort, "ncclCommAbort"),
    NEEDED(async_error, "ncclCommGetAsyncError"),
    NEEDED(group_start, "ncclGroupStart"),
    NEEDED(group_end, "ncclGroupEnd"),
    NEEDED(all_reduce, "ncclAllReduce"),
    NEEDED(all_gather, "ncclAllGather"),
    NEEDED(broadcast, "ncclBroadcast"),
    NEEDED(reduce_scatter, "ncclReduceScatter"),
    NEEDED(reduce, "ncclReduce"),
    NEEDED(send, "ncclSend"),
    NEEDED(recv, "ncclRecv"),
    NEWER(scaled_sum_create, "ncclRedOpCreatePreMulSum"),
    NEWER(op_destroy, "ncclRedOpDestroy"),
    NEWER(mem_alloc, "ncclMemAlloc"),
    NEWER(mem_free, "ncclMemFree"),
    NEWER(window_register, "ncclCommWindowRegister"),
    NEWER(window_deregister, "ncclCommWindowDeregister"),
};

static struct hvd_nccl functions;
static struct hvd_gpu_library library;
static bool was_found;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Prefers the library that the framework has already loaded. */
static void *open_library(const char *file)
{
    static const char soname[] = "libnccl.so.2";
    void *handle = NULL;

    if (file != NULL) {
        return dlopen(file, RTLD_NOW | RTLD_LOCAL);
    }
    handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (handle == NULL && dlsym(RTLD_DEFAULT, "ncclGetVersion") != NULL) {
        handle = dlopen(NULL, RTLD_NOW); /* NCCL is a part of another library */
    }
    return handle != NULL ? handle : dlopen(soname, RTLD_NOW | RTLD_LOCAL);
}

static int check_version(void)
{
    int result = functions.get_version(&library.version);

    functions.version = library.version;
    if (result == NCCL_SUCCESS && library.version >= NCCL_LEAST_VERSION) {
        return 0;
    }
    snprintf(
        library.problem, sizeof(library.problem),
        "ncclGetVersion returned version %d (result %d), but 2.7 or later is needed: "
        "install it, or set HVD_NCCL_LIBRARY to its path",
        library.version, result);
    return HVD_ERR_UNSUPPORTED;
}

static void find_nccl(const char *file)
{
    void *handle = open_library(file);

    library = (struct hvd_gpu_library){0};
    if (handle == NULL) {
        snprintf(library.problem, sizeof(library.problem),
                 "no NCCL here (%.150s): install PyTorch for CUDA, which contains it, or "
                 "libnccl2",
                 dlerror());
        return;
    }
    /* Check the version first: an older NCCL also lacks some of the functions. */
    if (hvd_library_bind(handle, symbols, 1, &functions, &library) == 0 &&
        check_version() == 0) {
        hvd_library_bind(handle, symbols, sizeof(symbols) / sizeof(symbols[0]),
                         &functions, &library);
    }
}

const struct hvd_nccl *hvd_nccl_find(const char *file, struct hvd_gpu_library *found)
{
    pthread_mutex_lock(&lock);
    /* If NCCL was not found before, look again: a framework may have loaded it since. */
    if (!was_found) {
        find_nccl(file);
        was_found = library.problem[0] == '\0';
    }
    *found = library;
    pthread_mutex_unlock(&lock);
    return found->problem[0] == '\0' ? &functions : NULL;
}

bool hvd_nccl_may_not_block(const struct hvd_nccl *nccl)
{
    bool hangs = nccl->version >= NCCL_HANGS_FROM && nccl->version < NCCL_HANGS_BEFORE;

    return nccl->init_config != NULL && nccl->version >= NCCL_CONFIG_VERSION && !hangs;
}

static int first_line(const char *text)
{
    const size_t most = 220;
    size_t length = strcspn(text, "\n");

    return (int)(length < most ? length : most);
}

int hvd_nccl_fail(const struct hvd_nccl *nccl, const char *function, int result,
                  ncclComm_t comm, struct hvd_error *err)
{
    bool is_net = result == NCCL_SYSTEM_ERROR || result == NCCL_REMOTE_ERROR;
    const char *last = nccl->last_error != NULL ? nccl->last_error(comm) : NULL;
    const char *text = nccl->error_string(result);

    last = last != NULL && last[0] != '\0' ? last : "no details";
    return hvd_fail(err, is_net ? HVD_ERR_NET : HVD_ERR_SYS,
                    "%s failed: %s (NCCL %d: %.*s); %s", function,
                    text != NULL ? text : "unknown error", nccl->version,
                    first_line(last), last, hvd_nccl_hint(result, last));
}
