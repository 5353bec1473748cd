/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's interface, as far as it is used, declared here: 2.7 and later.
 *
 * Since 2.14 a communicator need not block: what would wait for other ranks returns
 * NCCL_IN_PROGRESS, goes on in a thread of NCCL's own, and until async_error says that it has ended
 * the communicator may only be asked that, or be aborted. */
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
    NCCL_CONFIG_VERSION = 21400, /* the first that need not block */
};

/* ncclConfig_t of 2.14. Later ones are longer: NCCL reads no more than size, and by version gives
 * what came later, and what was padding here, its defaults. */
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
    /* NULL before 2.19: */
};

/* Finds NCCL once: file if that is not NULL, else the one that the process has loaded, else
 * libnccl.so.2. NULL: found tells why. Any thread. */
const struct hvd_nccl *hvd_nccl_find(const char *file, struct hvd_gpu_library *found);

/* As hvd_fail, for a function of NCCL that returned result; comm may be NULL. */
int hvd_nccl_fail(const struct hvd_nccl *nccl, const char *function, int result,
                  ncclComm_t comm, struct hvd_error *err);

#endif
