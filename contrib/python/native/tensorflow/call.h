/* SPDX-License-Identifier: Apache-2.0 */
/* One execution of a collective node: from TensorFlow's tensors to a request of libhvd
 * and back. */
#ifndef HVD_TENSORFLOW_CALL_H
#define HVD_TENSORFLOW_CALL_H

#include "contrib/python/native/tensorflow/done.h"
#include "contrib/python/native/tensorflow/gpu.h"
#include "contrib/python/native/tensorflow/kernel.h"
#include "contrib/python/native/waiter/waiter.h"

struct hvd_tf_call {
    struct hvd_awaited awaited; /* first; its request is what was submitted */
    struct TF_OpKernelContext *context;
    struct hvd_done done; /* how to tell that it has ended; not where the caller waits */
    struct hvd_tf_kernel *kernel; /* there until done is run */
    bool is_on_gpu; /* the tensors are; then: */
    struct hvd_tf_gpu gpu;
    bool is_alike; /* the tensors have the dtypes and shapes that the request has */
    struct TF_Tensor **inputs; /* [kernel->count], references that keep the memory */
    struct TF_Tensor **outputs; /* [kernel->count], NULL where libhvd allocates */
    struct hvd_tensor *tensors; /* [kernel->count], shapes are the call's */
};

/* Submits what the node has to do. NULL, and the context has failed, where that cannot
 * be. */
struct hvd_tf_call *hvd_tf_call_start(struct hvd_tf_kernel *kernel, bool is_on_gpu,
                                      struct TF_OpKernelContext *context);

/* Waits until the request has ended or, on a GPU, is on the stream, whose later work
 * waits for it there. Hands the outputs over or lets the context fail. Then the kernel
 * keeps the call for its next run, or it is freed. The caller runs `done` afterwards. */
void hvd_tf_call_finish(struct hvd_tf_call *call);

/* NULL is fine. */
void hvd_tf_call_destroy(struct hvd_tf_call *call);

#endif
