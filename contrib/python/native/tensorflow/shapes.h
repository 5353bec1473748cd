/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of outputs, as far as they are known before a graph runs. */
#ifndef HVD_TENSORFLOW_SHAPES_H
#define HVD_TENSORFLOW_SHAPES_H

#include "contrib/python/native/tensorflow/tensorflow.h"

tf_shape_function hvd_shapes_same; /* each output has the shape of its input */
/* like hvd_shapes_same, but the number of rows is unknown */
tf_shape_function hvd_shapes_rows;
/* the first output like hvd_shapes_rows; the second is a vector */
tf_shape_function hvd_shapes_rows_and_vector;
tf_shape_function hvd_shapes_number; /* one scalar */

#endif
