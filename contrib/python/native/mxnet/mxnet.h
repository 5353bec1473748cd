/* SPDX-License-Identifier: Apache-2.0 */
/* The part of MXNet's C interface (mxnet/c_api.h) that the engine's operations use, found
 * at run time in the libmxnet.so that Python has loaded: nothing is built against
 * MXNet. */
#ifndef HVD_MXNET_H
#define HVD_MXNET_H

#include <stdbool.h>

#include "gpu_binding/base/error.h"

typedef void *mxnet_array; /* NDArrayHandle */

struct mxnet_done; /* the engine's: see done.h */

typedef void mxnet_start_function(void *context, struct mxnet_done *done, void *argument);
typedef void mxnet_delete_function(void *argument);

/* struct Context: the device that an operation belongs to. */
struct mxnet_device {
    int type;
    int number;
};

enum {
    MXNET_CPU = 1,
    /* FnProperty::kCPUPrioritized: has threads of its own, and they heed the priority.
     * What only starts a transfer is not to queue behind computations. */
    MXNET_PRIORITIZED = 3,
};

/* Without "MX"; those that fail return non-zero, and GetLastError tells why. */
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

    /* NDArray::Reorder2DefaultAsync: convolutions keep arrays in oneDNN's own layout.
     * NULL where MXNet was built without oneDNN. */
    void (*reorder)(mxnet_array);
};

/* Filled in by hvd_mxnet_find and constant from then on. */
extern struct mxnet mx;

/* Looks the functions up in the library of this path, which the process has loaded. */
int hvd_mxnet_find(const char *path, struct hvd_error *err);

/* Where the array's elements are, row-major, in the memory of its device. Only where
 * nothing writes to it and what was to write has done so: in an operation that the engine
 * has started. */
int hvd_mxnet_address(mxnet_array array, void **address, struct hvd_error *err);

#endif
