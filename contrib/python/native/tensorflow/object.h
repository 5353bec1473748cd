/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of TensorFlow's C++ code, told apart by the names of their types.
 *
 * The C interface gives no access to the CUDA stream of a kernel (TF_GetStream refuses
 * all devices but pluggable ones), so hvd has to find the device in the kernel's context.
 * Where it lies there depends on the version. The C++ binary interface of Linux does not:
 * an object with virtual functions begins with a pointer to a table, and the word before
 * the table points to the name of the type. All reading is done by the kernel, so that a
 * wrong guess is an answer and not a crash. */
#ifndef HVD_TENSORFLOW_OBJECT_H
#define HVD_TENSORFLOW_OBJECT_H

#include <stdbool.h>

#include "contrib/python/native/tensorflow/tensorflow.h"

/* Whether at this address there is an object of this very type, by its mangled name, such
 * as "N10tensorflow9GPUDeviceE". Any address. */
bool hvd_tf_object_is(const void *address, const char *type);

/* The device that runs the kernel of this context, borrowed; NULL: none of this type was
 * found. */
void *hvd_tf_object_device(const struct TF_OpKernelContext *context, const char *type);

#endif
