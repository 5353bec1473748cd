/* SPDX-License-Identifier: Apache-2.0 */
/* TensorFlow's types as libhvd numbers them. */
#ifndef HVD_TENSORFLOW_DTYPE_H
#define HVD_TENSORFLOW_DTYPE_H

/* An enum hvd_dtype of hvd.h; -1: libhvd has no such type. */
int hvd_dtype_of_tf(int dtype);

#endif
