/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for TensorFlow's library with a GPU: the C functions that hvd_tensorflow.so
 * calls, and the C++ objects and functions in which it looks for the device and its
 * stream. Linked into a test, which is compiled for one of the versions below. */
#ifndef FAKE_TENSORFLOW_H
#define FAKE_TENSORFLOW_H

#include <stdatomic.h>

#include "contrib/python/native/tensorflow/tensorflow.h"

/* FAKE_TENSORFLOW is one of these. */
enum {
    FAKE_FOR_CPUS = 1, /* built without CUDA */
    FAKE_UNKNOWN = 2, /* does not export how to get the stream */
    FAKE_2_12 = 212, /* without asynchronous kernels */
    FAKE_2_15 = 215,
    FAKE_2_21 = 221, /* other places, and another way to the stream */
};

enum {
    FAKE_MOST = 4,
    FAKE_MOST_DIMS = 4,
};

/* One run of a node. What is not set is as the operation's attributes have it. */
struct fake_run {
    const char *op;
    const char *device; /* "CPU" or "GPU" */
    const char *name; /* of the tensors */
    int64_t reduce_op;
    int64_t root_rank;
    bool blocks;
    void **kernel; /* made by the first of several runs; NULL: one for this run alone */
    int input_count;
    struct TF_Tensor *inputs[FAKE_MOST]; /* the run's from now on */
    struct TF_Tensor *outputs[FAKE_MOST]; /* after the end */
    int code; /* TF_OK, or why it failed */
    char text[600];
    atomic_int ends; /* how often the kernel has said that it is done */
};

/* Whether there is a kernel; whether the argument of it lies in host memory. */
bool fake_has_kernel(const char *op, const char *device);
bool fake_is_on_host(const char *op, const char *device, const char *argument);

bool fake_has_async_kernels(void);

/* A tensor in this memory, which stays the caller's. */
struct TF_Tensor *fake_tensor(int dtype, const int64_t *dims, int ndim, void *data);
int64_t fake_rows(const struct TF_Tensor *tensor);
void *fake_data(const struct TF_Tensor *tensor);

/* The stream on which the device computes; before the first run. */
void fake_use_stream(void *stream);

/* From now on contexts have no device that could be found. */
void fake_lose_device(void);

/* The memory that the next output gets; usually it is new. */
void fake_next_output(void *memory);

/* Makes the kernel, if there is none, and calls it. Returns false if it could not be
 * made. */
bool fake_run_start(struct fake_run *run);
bool fake_run_wait(
    struct fake_run *run); /* until it is done; false: not within a minute */
void fake_run_free(struct fake_run *run);
/* Deletes the kernel of several runs like this one. */
void fake_run_delete_kernel(struct fake_run *run);

void TF_DeleteTensor(struct TF_Tensor *tensor);

#endif
