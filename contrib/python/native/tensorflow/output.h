/* SPDX-License-Identifier: Apache-2.0 */
/* The outputs of a collective node. If the shape is known before the collective begins,
 * the output is made then, in the memory of the input if that has no other user.
 * Otherwise libhvd allocates the output, and TensorFlow takes it over without a copy. */
#ifndef HVD_TENSORFLOW_OUTPUT_H
#define HVD_TENSORFLOW_OUTPUT_H

#include "contrib/python/native/tensorflow/call.h"

/* Whether outputs of this kind are made before the collective begins. */
bool hvd_tf_output_is_made(enum hvd_tf_kind kind);

/* Makes output `index`, which the call owns, and writes the addresses of the input and
 * the output to the call's tensor. */
int hvd_tf_output_make(struct hvd_tf_call *call, int index, struct hvd_error *error);

/* Passes the outputs that were not made before to TensorFlow, after the request has
 * succeeded. Failures are written to `status`. */
void hvd_tf_outputs_set(struct hvd_tf_call *call, struct TF_Status *status);

#endif
