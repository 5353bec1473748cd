/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU of a kernel: its number, and the CUDA stream on which TensorFlow computes.
 *
 * All that TensorFlow does with the memory of its GPU is ordered by this stream,
 * including the reuse of memory. So a collective begins after the work that is on the
 * stream, and later work on the stream begins after the collective. */
#ifndef HVD_TENSORFLOW_GPU_H
#define HVD_TENSORFLOW_GPU_H

#include "contrib/python/native/tensorflow/tensorflow.h"
#include "gpu_binding/base/error.h"

struct hvd_tf_gpu {
    int number;
    void *context; /* the CUDA context */
    /* false: the stream was not found, and hvd waits for the whole device instead */
    bool has_stream;
    void *stream;
};

/* Looks up the functions that kernels on GPUs need; called once, after
 * hvd_tensorflow_find. Returns false if kernels for GPUs cannot be registered; TensorFlow
 * then copies GPU tensors to the host. Warns if this TensorFlow was built for CUDA. */
bool hvd_tf_gpu_open(void);

/* Finds the GPU of the kernel that is running on this thread. */
int hvd_tf_gpu_of(const struct TF_OpKernelContext *context, struct hvd_tf_gpu *out,
                  struct hvd_error *err);

/* Waits until the device is idle if there is no stream; otherwise does nothing. Any
 * thread may call it. */
int hvd_tf_gpu_settle(const struct hvd_tf_gpu *gpu, struct hvd_error *err);

#endif
