/* SPDX-License-Identifier: Apache-2.0 */
/* Do all ranks mean the same by one tensor? Horovod's checks, in Horovod's words. Pure. */
#ifndef HVD_VALIDATE_H
#define HVD_VALIDATE_H

#include "collectives/message.h"
#include "gpu_binding/error.h"

#define HVD_VALID 1000 /* above the index of every check */

/* Compares what two ranks said about one name. Returns HVD_VALID, or the index of the first
 * check that fails, with the message for every rank in err. When more ranks disagree, the
 * failure with the lowest index is the one to report. */
int hvd_validate(const struct hvd_proposal *a, const struct hvd_proposal *b,
                 struct hvd_error *err);

/* "[2, 3]": writes at most bytes to text. */
void hvd_shape_format(const int64_t *shape, int ndim, char *text, size_t bytes);

#endif
