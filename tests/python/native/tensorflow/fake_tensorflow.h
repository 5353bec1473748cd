/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for the library of a TensorFlow with a GPU. It has the C functions that
 * hvd_tensorflow.so calls, and the C++ objects and functions in which hvd_tensorflow.so
 * looks for the device and its stream. It is linked into a test, which is compiled for
 * each of the versions below. */
#ifndef FAKE_TENSORFLOW_H
#define FAKE_TENSORFLOW_H

#include <stdatomic.h>

#include "contrib/python/native/tensorflow/tensorflow.h"

/* FAKE_TENSORFLOW has one of these values. */
enum {
    FAKE_FOR_CPUS = 1, /* built without CUDA */
    FAKE_UNKNOWN = 2, /* does not export a function for the stream */
    FAKE_2_12 = 212, /* without asynchronous kernels */
    FAKE_2_15 = 215,
    /* the objects have other positions, and another function returns the stream */
    FAKE_2_21 = 221,
};

enum {
    FAKE_MOST = 4,
    FAKE_MOST_DIMS = 4,
};

/* One run of a node. Fields that are 0 stand for the defaults of the operation's
 * attributes. */
struct fake_run {
    const char *op;
    const char *device; /* "CPU" or "GPU" */
    const char *name; /* the attribute tensor_name */
    int64_t reduce_op;
    int64_t root_rank;
    bool blocks;
    /* A kernel that several runs share; the first one makes it. NULL: this run makes its
     * own. */
    void **kernel;
    int input_count;
    struct TF_Tensor *inputs[FAKE_MOST]; /* owned by the run */
    struct TF_Tensor *outputs[FAKE_MOST]; /* valid after the end of the run */
    int code; /* TF_OK, or the code of the failure */
    char text[600];
    atomic_int ends; /* how often the kernel has ended */
};

/* Whether the operation has a kernel for the device, and whether an argument of that
 * kernel is in host memory. */
bool fake_has_kernel(const char *op, const char *device);
bool fake_is_on_host(const char *op, const char *device, const char *argument);

bool fake_has_async_kernels(void);

/* Makes a tensor in the caller's memory. */
struct TF_Tensor *fake_tensor(int dtype, const int64_t *dims, int ndim, void *data);
int64_t fake_rows(const struct TF_Tensor *tensor);
void *fake_data(const struct TF_Tensor *tensor);

/* Sets the stream on which the device computes; call it before the first run. */
void fake_use_stream(void *stream);

/* Makes the device disappear from contexts from now on. */
void fake_lose_device(void);

/* Sets the memory of the next output, which is otherwise allocated. */
void fake_next_output(void *memory);

/* Makes the kernel, if there is none, and calls it. Returns false if the kernel could not
 * be made. */
bool fake_run_start(struct fake_run *run);
/* Waits for the end of the run. Returns false if it has not ended within a minute. */
bool fake_run_wait(struct fake_run *run);
void fake_run_free(struct fake_run *run);
/* Deletes the kernel that several runs have shared. */
void fake_run_delete_kernel(struct fake_run *run);

void TF_DeleteTensor(struct TF_Tensor *tensor);

#endif
