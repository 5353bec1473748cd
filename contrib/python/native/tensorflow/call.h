/* SPDX-License-Identifier: Apache-2.0 */
/* One execution of a collective node: makes a request of libhvd from TensorFlow's
 * tensors, and TensorFlow's outputs from its results. */
#ifndef HVD_TENSORFLOW_CALL_H
#define HVD_TENSORFLOW_CALL_H

#include "contrib/python/native/tensorflow/done.h"
#include "contrib/python/native/tensorflow/gpu.h"
#include "contrib/python/native/tensorflow/kernel.h"
#include "contrib/python/native/waiter/waiter.h"

struct hvd_tf_call {
    struct hvd_awaited awaited; /* must be the first member; has the request */
    struct TF_OpKernelContext *context;
    struct hvd_done done; /* TensorFlow's callback; unused if the calling thread waits */
    struct hvd_tf_kernel *kernel; /* valid until done is run */
    bool is_on_gpu; /* whether the tensors are on the GPU `gpu` */
    struct hvd_tf_gpu gpu;
    /* whether the tensors have the dtypes and shapes of the kept request */
    bool is_alike;
    /* [kernel->count]; references that keep the memory alive */
    struct TF_Tensor **inputs;
    struct TF_Tensor **outputs; /* [kernel->count]; NULL if libhvd allocates the output */
    struct hvd_tensor *tensors; /* [kernel->count]; the call owns the shapes */
};

/* Submits the collective of the node. If that fails, reports the failure to the context
 * and returns NULL. */
struct hvd_tf_call *hvd_tf_call_start(struct hvd_tf_kernel *kernel, bool is_on_gpu,
                                      struct TF_OpKernelContext *context);

/* Waits until the request has ended or, on a GPU, until the stream waits for it. Passes
 * the outputs or the failure to the context. Then the kernel keeps the call for its next
 * run, or the call is freed. The caller runs `done` afterwards. */
void hvd_tf_call_finish(struct hvd_tf_call *call);

/* Accepts NULL. */
void hvd_tf_call_destroy(struct hvd_tf_call *call);

#endif
