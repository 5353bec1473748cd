/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives as operations of MXNet's engine. contrib/python/horovod/mxnet/engine.py
 * calls them through ctypes.
 *
 *     Python            engine                        waiter           libhvd
 *     hvd_mxnet_push -> waits for operations that
 *                       write or read the arrays
 *                       start()  -------------------------------------> hvd_*_start
 *                                                     waits for it  <-> works on it
 *                       starts operations that     <- ended()
 *                       need the arrays
 *
 * No thread of the engine waits for other ranks, so ranks may push collectives in
 * different orders. None of these threads needs Python's GIL. */
#ifndef HVD_MXNET_OPERATION_H
#define HVD_MXNET_OPERATION_H

#include "collectives/hvd.h"
#include "contrib/python/native/mxnet/mxnet.h"
#include "gpu_binding/base/attr.h"

enum hvd_mxnet_kind {
    HVD_MXNET_ALLREDUCE,
    HVD_MXNET_BROADCAST, /* of one tensor */
};

/* The caller owns all memory; hvd_mxnet_push copies it. */
struct hvd_mxnet_call {
    enum hvd_mxnet_kind kind;
    enum hvd_op op; /* allreduce */
    double prescale; /* allreduce */
    double postscale; /* allreduce */
    int root; /* broadcast */
    int set;
    int priority; /* for the engine, which starts the highest first */
    int count;
    /* [count]; addresses and streams are ignored */
    const struct hvd_tensor *tensors;
    /* [count]; the collective overwrites them with the results */
    const mxnet_array *arrays;
};

/* Prepares the library; call it once, before the other functions. path: the path of
 * libmxnet.so. */
HVD_EXPORT int hvd_mxnet_open(const char *path, struct hvd_error *err);

/* Submits the collective to the engine and returns. A failure of the collective is
 * reported by the engine to threads that wait for the arrays. Any thread may call it. */
HVD_EXPORT int hvd_mxnet_push(const struct hvd_mxnet_call *call, struct hvd_error *err);

/* Waits until all submitted collectives have ended. Returns 0, or HVD_INPROGRESS after
 * timeout_ms. */
HVD_EXPORT int hvd_mxnet_drain(int timeout_ms);

#endif
