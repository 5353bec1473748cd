/* SPDX-License-Identifier: Apache-2.0 */
/* Finds C++ objects of TensorFlow by the names of their types.
 *
 * The C interface gives no access to the CUDA stream of a kernel: TF_GetStream supports
 * only pluggable devices. So hvd has to find the device in the kernel's context. The
 * position of the device depends on the version of TensorFlow. But the C++ binary
 * interface of Linux shows the type of an object: an object with virtual functions begins
 * with a pointer to a table, and the word before the table points to the description of
 * the type with its name. All reads go through process_vm_readv, so that a wrong address
 * gives an error and not a crash. */
#ifndef HVD_TENSORFLOW_OBJECT_H
#define HVD_TENSORFLOW_OBJECT_H

#include <stdbool.h>

#include "contrib/python/native/tensorflow/tensorflow.h"

/* Whether there is an object of exactly this type at the address. type: its mangled name,
 * such as "N10tensorflow9GPUDeviceE". The address need not be valid. */
bool hvd_tf_object_is(const void *address, const char *type);

/* Returns the device of the given type that runs the kernel of this context, or NULL if
 * none was found. TensorFlow owns it. */
void *hvd_tf_object_device(const struct TF_OpKernelContext *context, const char *type);

#endif
