/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that tell this rank's numbers when the graph runs, which may be in another job
 * than when it was made. Kernels as TensorFlow wants them. */
#ifndef HVD_TENSORFLOW_FACT_H
#define HVD_TENSORFLOW_FACT_H

#include "contrib/python/native/tensorflow/tensorflow.h"

tf_create_function hvd_fact_create_rank;
tf_create_function hvd_fact_create_local_rank;
tf_create_function hvd_fact_create_local_size;
/* of the attribute process_set_id; so the next */
tf_create_function hvd_fact_create_size;
tf_create_function hvd_fact_create_set_rank; /* this rank's index in it */
tf_create_function hvd_fact_create_included; /* 1 where this rank is a member, else 0 */
tf_compute_function hvd_fact_compute;
tf_delete_function hvd_fact_delete;

#endif
