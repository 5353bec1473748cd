/* SPDX-License-Identifier: Apache-2.0 */
/* Translates TensorFlow's data types to those of libhvd. */
#ifndef HVD_TENSORFLOW_DTYPE_H
#define HVD_TENSORFLOW_DTYPE_H

/* Returns the enum hvd_dtype for a TF_DataType, or -1 if libhvd has no such type. */
int hvd_dtype_of_tf(int dtype);

#endif
