/* SPDX-License-Identifier: Apache-2.0 */
/* Two operations of TensorFlow that find out whether the ranks train different variables,
 * because the script has not broadcast those of one rank. Neither waits for other ranks.
 *
 * HorovodStartStep counts its runs by its attributes, a name and a process set, and
 * returns 1 in one of them. The program then runs HorovodStartCompare, which starts an
 * allreduce of 32 bytes; a later HorovodStartStep reads its result. Both run after the
 * ranks have reduced gradients of this name, so each run of a rank belongs to one run of
 * every other rank, however the ranks skip steps. The functions are kernels for
 * TensorFlow. */
#ifndef HVD_TENSORFLOW_START_H
#define HVD_TENSORFLOW_START_H

#include "contrib/python/native/tensorflow/tensorflow.h"

tf_create_function hvd_start_create;
tf_compute_function hvd_start_compute_step;
tf_compute_function hvd_start_compute_compare;
tf_delete_function hvd_start_delete;

/* Stops all comparisons of the job, because this rank has joined: ranks have taken
 * different numbers of steps then. */
void hvd_start_stop(void);

/* A function that warns of different variables; it may be called in any thread. The
 * arguments are the attributes of the operation that found the difference. */
typedef void hvd_start_warning(const char *tensor_name, int process_set_id);

/* Python calls these. The first sets the function that warns. The second begins to count
 * from zero in one process set, or in all if `set` is negative, which is a new job. The
 * third takes part in the comparisons of this job without a value: nothing is compared.
 */
HVD_EXPORT void hvd_tensorflow_start_warn(hvd_start_warning *warn);
HVD_EXPORT void hvd_tensorflow_start_forget(int set);
HVD_EXPORT void hvd_tensorflow_start_abstain(void);

#endif
