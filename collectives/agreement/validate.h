/* SPDX-License-Identifier: Apache-2.0 */
/* Do all ranks mean the same by one tensor? Horovod's checks, in Horovod's words.
 * Pure. */
#ifndef HVD_VALIDATE_H
#define HVD_VALIDATE_H

#include "collectives/agreement/ready_table.h"
#include "gpu_binding/base/error.h"

/* Compares all descriptions of a complete ready tensor; few kinds can do without the
 * tensor of a rank that has joined. Returns 0, or HVD_ERR_MISMATCH with the message of
 * the first check that fails, for every rank. */
int hvd_validate(const struct hvd_ready_tensor *ready_tensor, struct hvd_error *err);

/* The same for a cached tensor and another description of it. err may be NULL. */
int hvd_validate_pair(struct hvd_cached_tensor *cached,
                      const struct hvd_descriptor *other, struct hvd_error *err);

/* "[2, 3]": writes at most bytes to text. */
void hvd_shape_format(const int64_t *shape, int ndim, char *text, size_t bytes);

#endif
