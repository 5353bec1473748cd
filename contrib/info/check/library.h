/* SPDX-License-Identifier: Apache-2.0 */
/* Loads libhvd and the libraries that it needs, for --check only. Other options of
 * hvd-info work where libhvd cannot be loaded. */
#ifndef HVD_INFO_LIBRARY_H
#define HVD_INFO_LIBRARY_H

#include "collectives/hvd.h"
#include "gpu_binding/base/error.h"

/* The functions of hvd.h that the check calls. */
struct hvd_info_library {
    const char *(*version)(void);
    int (*start_describe)(char *text, size_t size);
    int (*gpu_describe)(char *text, size_t size);
    int (*init)(struct hvd_error *err);
    int (*shutdown)(void);
    int (*rank)(void);
    int (*size)(void);
    const char *(*host)(int rank);
    int (*allreduce_start)(const struct hvd_tensor *tensors, int count, enum hvd_op op,
                           double prescale, double postscale, int set,
                           struct hvd_request **request, struct hvd_error *err);
    int (*gather_start)(const struct hvd_tensor *tensor, int root, int set,
                        struct hvd_request **request, struct hvd_error *err);
    int (*barrier_start)(int set, struct hvd_request **request, struct hvd_error *err);
    int (*send_start)(const struct hvd_tensor *tensor, int dest, int64_t tag, int set,
                      struct hvd_request **request, struct hvd_error *err);
    int (*recv_start)(const struct hvd_tensor *tensor, int source, int64_t tag, int set,
                      struct hvd_request **request, struct hvd_error *err);
    int (*wait_for)(struct hvd_request *request, int timeout_ms, struct hvd_error *err);
    int (*request_take)(struct hvd_request *request, int index, void **data,
                        int64_t *rows);
    void (*request_free)(struct hvd_request *request);
    void (*free)(void *data);
};

/* Loads the libhvd that HVD_LIBRARY names, else the one of this installation or build,
 * else that of the system. It stays loaded. Returns HVD_ERR_UNSUPPORTED if there is none,
 * or if it lacks a function. */
int hvd_info_library_open(struct hvd_info_library *library, struct hvd_error *err);

#endif
