/* SPDX-License-Identifier: Apache-2.0 */
/* The outputs of a collective node: made before it begins where their shapes are known,
 * in the input's memory if nobody else needs that; else what libhvd has allocated,
 * without a copy. */
#ifndef HVD_TENSORFLOW_OUTPUT_H
#define HVD_TENSORFLOW_OUTPUT_H

#include "contrib/python/native/tensorflow/call.h"

/* Whether outputs are made before the collective begins. */
bool hvd_tf_output_is_made(enum hvd_tf_kind kind);

/* Makes output `index`, owned by the call, and says in the call's tensor where it and its
 * input are. */
int hvd_tf_output_make(struct hvd_tf_call *call, int index, struct hvd_error *error);

/* The request has ended well: hands over what was not made before. The status says what
 * fails. */
void hvd_tf_outputs_set(struct hvd_tf_call *call, struct TF_Status *status);

#endif
