/* SPDX-License-Identifier: Apache-2.0 */
/* The part of MXNet's C interface (mxnet/c_api.h) that hvd uses. It is looked up at run
 * time in the libmxnet.so that Python has loaded, so the build does not need MXNet. */
#ifndef HVD_MXNET_H
#define HVD_MXNET_H

#include <stdbool.h>

#include "gpu_binding/base/error.h"

typedef void *mxnet_array; /* NDArrayHandle */

struct mxnet_done; /* the engine's callback; see done.h */

typedef void mxnet_start_function(void *context, struct mxnet_done *done, void *argument);
typedef void mxnet_delete_function(void *argument);

/* MXNet's struct Context: the device on which an operation runs. */
struct mxnet_device {
    int type;
    int number;
};

enum {
    MXNET_CPU = 1,
    /* FnProperty::kCPUPrioritized: the operation runs on threads that respect priorities
     * and run no computations, so that a transfer need not wait for a computation. */
    MXNET_PRIORITIZED = 3,
};

/* MXNet's functions, without the prefix "MX". A function that can fail returns non-zero
 * if it fails; GetLastError then returns the reason. */
struct mxnet {
    int (*EnginePushAsyncND)(mxnet_start_function *, void *argument,
                             mxnet_delete_function *, const struct mxnet_device *,
                             mxnet_array *reads, int read_count, mxnet_array *writes,
                             int write_count, const int *property, int priority,
                             const char *name, bool wait);
    int (*ShallowCopyNDArray)(mxnet_array, mxnet_array *copy);
    int (*NDArrayFree)(mxnet_array);
    int (*NDArrayToDLPack)(mxnet_array, void **managed);
    int (*NDArrayCallDLPackDeleter)(void *managed);
    const char *(*GetLastError)(void);

    /* NDArray::Reorder2DefaultAsync: changes an array from oneDNN's layout, which
     * convolutions use, to the row-major one. NULL if MXNet was built without oneDNN. */
    void (*reorder)(mxnet_array);
};

/* Filled in by hvd_mxnet_find, constant afterwards. */
extern struct mxnet mx;

/* Looks up the functions in the library of this path, which the process has loaded. */
int hvd_mxnet_find(const char *path, struct hvd_error *err);

/* Returns the address of the array's elements, row-major, in the memory of its device.
 * Call it only within an operation that the engine has started: no other operation writes
 * the array then. */
int hvd_mxnet_address(mxnet_array array, void **address, struct hvd_error *err);

#endif
