/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the CUDA driver's interface that hvd uses. It is declared here so that one
 * build serves CUDA 11 to 13. The names are NVIDIA's, with the version suffix of the
 * driver's exports. */
#ifndef HVD_GPU_CUDA_H
#define HVD_GPU_CUDA_H

#include "collectives/gpu/module/library.h"

typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef uint64_t CUdeviceptr;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_LEAST_VERSION = 11000,
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_MEMHOSTALLOC_PORTABLE = 1,
    CU_DEVICE_GPU_DIRECT_RDMA_WRITES_ORDERING = 118,
    /* this value and larger ones: writes are ordered */
    CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER = 100,
    CU_DEVICE_DMA_BUF_SUPPORTED = 124,
    CU_DEVICE_MULTICAST_SUPPORTED = 132, /* NVLink switches that copy and add */
    CU_P2P_NATIVE_ATOMIC_SUPPORTED = 3,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2,
    CU_STREAM_CAPTURE_STATUS_NONE = 0,
    CU_DEVICE_MULTIPROCESSORS = 16,
    CU_IPC_LAZY_PEER_ACCESS = 1,
};

/* CUipcMemHandle: names memory of the device for other processes of this node */
struct hvd_cuda_handle {
    char reserved[64];
};

struct hvd_cuda {
    int (*init)(unsigned flags);
    int (*driver_version)(int *version);
    int (*error_name)(int error, const char **name);
    int (*error_string)(int error, const char **text);
    int (*device_count)(int *count);
    int (*device_get)(int *device, int ordinal);
    int (*device_uuid)(void *uuid, int device);
    int (*device_bus_id)(char *id, int bytes, int device);
    int (*device_attribute)(int *value, int attribute, int device);
    int (*can_access)(int *can, int device, int peer);
    int (*p2p_attribute)(int *value, int attribute, int device, int peer);
    int (*ctx_retain)(CUcontext *ctx, int device);
    int (*ctx_release)(int device);
    int (*ctx_push)(CUcontext ctx);
    int (*ctx_pop)(CUcontext *ctx);
    int (*priority_range)(int *least, int *greatest);
    int (*stream_create)(CUstream *stream, unsigned flags, int priority);
    int (*stream_destroy)(CUstream stream);
    int (*stream_wait)(CUstream stream, CUevent event, unsigned flags);
    int (*stream_id)(CUstream stream, unsigned long long *id); /* NULL before 12.0 */
    int (*is_capturing)(CUstream stream, int *status);
    int (*exchange_capture_mode)(int *mode); /* of the calling thread */
    int (*event_create)(CUevent *event, unsigned flags);
    int (*event_destroy)(CUevent event);
    int (*event_record)(CUevent event, CUstream stream);
    int (*event_query)(CUevent event);
    int (*event_elapsed)(float *ms, CUevent from, CUevent to);
    int (*mem_info)(size_t *free_bytes, size_t *total);
    int (*mem_alloc)(CUdeviceptr *memory, size_t bytes);
    int (*mem_free)(CUdeviceptr memory);
    int (*ipc_get)(struct hvd_cuda_handle *handle, CUdeviceptr memory);
    int (*ipc_open)(CUdeviceptr *memory, struct hvd_cuda_handle handle, unsigned flags);
    int (*ipc_close)(CUdeviceptr memory);
    int (*host_alloc)(void **memory, size_t bytes, unsigned flags);
    int (*host_free)(void *memory);
    int (*copy)(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
    int (*set8)(CUdeviceptr to, unsigned char value, size_t count, CUstream stream);
    int (*module_load)(CUmodule *module, const void *image);
    int (*module_function)(CUfunction *function, CUmodule module, const char *name);
    int (*module_unload)(CUmodule module);
    int (*launch)(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                  unsigned block_x, unsigned block_y, unsigned block_z,
                  unsigned shared_bytes, CUstream stream, void **parameters,
                  void **extra);
};

/* Finds the driver; only a successful search is remembered. If there is no usable driver,
 * returns NULL and stores the reason in found->problem. Any thread. */
const struct hvd_cuda *hvd_cuda_find(struct hvd_gpu_library *found);

/* Like hvd_fail, for a function of the driver that returned `error`. */
int hvd_cuda_fail(const struct hvd_cuda *cuda, const char *function, int error,
                  struct hvd_error *err);

#endif
