/* SPDX-License-Identifier: Apache-2.0 */
/* What TensorFlow can know of outputs before a graph runs. */
#ifndef HVD_TENSORFLOW_SHAPES_H
#define HVD_TENSORFLOW_SHAPES_H

#include "contrib/python/native/tensorflow/tensorflow.h"

tf_shape_function hvd_shapes_same; /* each output is like its input */
tf_shape_function hvd_shapes_rows; /* each like its input, but for the rows */
tf_shape_function hvd_shapes_rows_and_vector; /* the one like its input, then a vector */
tf_shape_function hvd_shapes_number; /* one number */

#endif
