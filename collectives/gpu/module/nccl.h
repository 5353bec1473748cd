/* SPDX-License-Identifier: Apache-2.0 */
/* The part of NCCL's interface that hvd uses, declared here, for versions 2.7 and later.
 *
 * From 2.14 on, communicators may be non-blocking: functions that would wait for other
 * ranks return NCCL_IN_PROGRESS and continue in a thread of NCCL. Until async_error
 * reports the end, the only calls allowed on that communicator are async_error and abort.
 * async_error also completes what was begun, so only the thread that launched it may call
 * async_error. */
#ifndef HVD_GPU_NCCL_H
#define HVD_GPU_NCCL_H

#include "collectives/gpu/module/cuda.h"

typedef struct ncclComm *ncclComm_t;

typedef struct {
    char internal[HVD_GPU_ID_BYTES];
} ncclUniqueId;

enum {
    NCCL_SUCCESS = 0,
    NCCL_UNHANDLED_CUDA_ERROR = 1,
    NCCL_SYSTEM_ERROR = 2,
    NCCL_INVALID_USAGE = 5,
    NCCL_REMOTE_ERROR = 6,
    NCCL_IN_PROGRESS = 7,
    NCCL_LEAST_VERSION = 2700,
    NCCL_CONFIG_VERSION = 21400, /* the first version with a config */
    NCCL_WINDOW_VERSION = 22700, /* the first with windows */
    NCCL_WINDOW_SYMMETRIC = 1, /* NCCL_WIN_COLL_SYMMETRIC */
    NCCL_SHARED_GPU_VERSION = 23000, /* the first with NCCL_MULTI_RANK_GPU_ENABLE */
    /* From the first of these versions on, and before the second, non-blocking calls
     * sometimes hang. */
    NCCL_HANGS_FROM = 22600,
    NCCL_HANGS_BEFORE = 22700,
};

/* ncclConfig_t of 2.14. Later versions have more fields: NCCL reads `size` bytes, and
 * sets newer fields to their defaults by `version`. */
struct hvd_nccl_config {
    size_t size;
    unsigned magic;
    unsigned version; /* of this declaration, not of the library */
    int blocking;
};

struct hvd_nccl {
    int version;
    int (*get_version)(int *version);
    int (*get_id)(ncclUniqueId *id);
    const char *(*error_string)(int result);
    const char *(*last_error)(ncclComm_t comm); /* NULL before 2.13 */
    int (*init_rank)(ncclComm_t *comm, int size, ncclUniqueId id, int rank);
    int (*init_config)(ncclComm_t *comm, int size, ncclUniqueId id, int rank,
                       struct hvd_nccl_config *config); /* NULL before 2.14 */
    int (*finalize)(ncclComm_t comm); /* NULL before 2.14 */
    int (*destroy)(ncclComm_t comm);
    int (*abort)(ncclComm_t comm);
    int (*async_error)(ncclComm_t comm, int *result);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*all_reduce)(const void *from, void *to, size_t count, int dtype, int op,
                      ncclComm_t comm, CUstream stream);
    int (*all_gather)(const void *from, void *to, size_t count, int dtype,
                      ncclComm_t comm, CUstream stream);
    int (*broadcast)(const void *from, void *to, size_t count, int dtype, int root,
                     ncclComm_t comm, CUstream stream);
    int (*reduce_scatter)(const void *from, void *to, size_t count, int dtype, int op,
                          ncclComm_t comm, CUstream stream);
    int (*reduce)(const void *from, void *to, size_t count, int dtype, int op, int root,
                  ncclComm_t comm, CUstream stream);
    int (*send)(const void *from, size_t count, int dtype, int peer, ncclComm_t comm,
                CUstream stream);
    int (*recv)(void *to, size_t count, int dtype, int peer, ncclComm_t comm,
                CUstream stream);
    int (*scaled_sum_create)(int *op, void *scalar, int dtype, int residence,
                             ncclComm_t comm); /* NULL before 2.11 */
    int (*op_destroy)(int op, ncclComm_t comm); /* NULL before 2.11 */
    int (*mem_alloc)(void **memory, size_t bytes); /* this and mem_free: since 2.19 */
    int (*mem_free)(void *memory);
    int (*window_register)(ncclComm_t comm, void *memory, size_t bytes, void **window,
                           int flags); /* NULL before 2.27 */
    int (*window_deregister)(ncclComm_t comm, void *window); /* NULL before 2.27 */
};

/* Finds NCCL; only a successful search is remembered. Loads `file` if it is not NULL;
 * else takes the library that the process has already loaded, else libnccl.so.2. If there
 * is none, returns NULL and stores the reason in found->problem. Any thread. */
const struct hvd_nccl *hvd_nccl_find(const char *file, struct hvd_gpu_library *found);

/* Whether this version has working non-blocking communicators. */
bool hvd_nccl_may_not_block(const struct hvd_nccl *nccl);

/* Like hvd_fail, for a function of NCCL that returned `result`; comm may be NULL. */
int hvd_nccl_fail(const struct hvd_nccl *nccl, const char *function, int result,
                  ncclComm_t comm, struct hvd_error *err);

#endif
