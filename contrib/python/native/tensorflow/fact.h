/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that return the numbers of this rank, as they are when the graph runs. The graph
 * may run in another job than the one in which it was built. The functions are kernels
 * for TensorFlow. */
#ifndef HVD_TENSORFLOW_FACT_H
#define HVD_TENSORFLOW_FACT_H

#include "contrib/python/native/tensorflow/tensorflow.h"

tf_create_function hvd_fact_create_rank;
tf_create_function hvd_fact_create_local_rank;
tf_create_function hvd_fact_create_local_size;
/* the size of the process set in the attribute process_set_id; the next two functions
 * also use this set */
tf_create_function hvd_fact_create_size;
tf_create_function hvd_fact_create_set_rank; /* this rank's index in the set */
tf_create_function hvd_fact_create_included; /* 1 if this rank is a member, otherwise 0 */
tf_compute_function hvd_fact_compute;
tf_delete_function hvd_fact_delete;

#endif
