/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives as operations of MXNet's engine. Called by
 * contrib/python/horovod/mxnet/engine.py, through ctypes.
 *
 *     Python            engine                        waiter           libhvd
 *     hvd_mxnet_push -> waits until what computes
 *                       the arrays has ended, and
 *                       what reads them too
 *                       start()  -------------------------------------> hvd_*_start
 *                                                     waits for it  <-> works on it
 *                       lets those go on that need <- ended()
 *                       the arrays
 *
 * No thread of the engine waits, so ranks may push in different orders, and none needs
 * Python. */
#ifndef HVD_MXNET_OPERATION_H
#define HVD_MXNET_OPERATION_H

#include "collectives/hvd.h"
#include "contrib/python/native/mxnet/mxnet.h"
#include "gpu_binding/base/attr.h"

enum hvd_mxnet_kind {
    HVD_MXNET_ALLREDUCE,
    HVD_MXNET_BROADCAST, /* of one tensor */
};

/* All of it is the caller's, and is copied. */
struct hvd_mxnet_call {
    enum hvd_mxnet_kind kind;
    enum hvd_op op; /* allreduce */
    double prescale; /* allreduce */
    double postscale; /* allreduce */
    int root; /* broadcast */
    int set;
    int priority; /* for the engine: what has more goes first */
    int count;
    /* [count]; addresses and streams are not looked at */
    const struct hvd_tensor *tensors;
    const mxnet_array *arrays; /* [count]; where the results go too */
};

/* Once, before the others; path is libmxnet.so's. */
HVD_EXPORT int hvd_mxnet_open(const char *path, struct hvd_error *err);

/* Hands the collective over to the engine and returns. How it ends is told by the engine,
 * to those who wait for the arrays. Any thread. */
HVD_EXPORT int hvd_mxnet_push(const struct hvd_mxnet_call *call, struct hvd_error *err);

/* Waits until all that was pushed has ended; 0, or HVD_INPROGRESS after timeout_ms. */
HVD_EXPORT int hvd_mxnet_drain(int timeout_ms);

#endif
