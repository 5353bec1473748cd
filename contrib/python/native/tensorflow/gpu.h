/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU of a kernel: its number, and the CUDA stream on which TensorFlow computes.
 *
 * Everything that TensorFlow does with the memory of its GPU is ordered by this stream,
 * also that memory is used again. So a collective begins after what is on it, and what
 * comes next on it begins after the collective. */
#ifndef HVD_TENSORFLOW_GPU_H
#define HVD_TENSORFLOW_GPU_H

#include "contrib/python/native/tensorflow/tensorflow.h"
#include "gpu_binding/base/error.h"

struct hvd_tf_gpu {
    int number;
    void *context; /* of CUDA */
    /* false: it could not be found, and the device is waited for instead */
    bool has_stream;
    void *stream;
};

/* Looks for what kernels for GPUs need, once, after hvd_tensorflow_find. False: there are
 * none to be registered, and TensorFlow copies GPU tensors to the host. Warns where it
 * has been built for CUDA. */
bool hvd_tf_gpu_open(void);

/* The GPU of the kernel that runs on this thread, and is about to start a collective. */
int hvd_tf_gpu_of(const struct TF_OpKernelContext *context, struct hvd_tf_gpu *out,
                  struct hvd_error *err);

/* Without a stream, waits until the device has done all that it was given. Any thread. */
int hvd_tf_gpu_settle(const struct hvd_tf_gpu *gpu, struct hvd_error *err);

#endif
