/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that all ranks mean the same by a tensor: Horovod's checks, with Horovod's
 * messages. Pure. */
#ifndef HVD_VALIDATE_H
#define HVD_VALIDATE_H

#include "collectives/agreement/ready_table.h"
#include "gpu_binding/base/error.h"

/* Compares all descriptions of a complete ready tensor, and checks that its kind allows
 * that a joined rank lacks it. Returns 0, or HVD_ERR_MISMATCH with the message of the
 * first check that fails, for all ranks. */
int hvd_validate(const struct hvd_ready_tensor *ready_tensor, struct hvd_error *err);

/* Compares a cached tensor with another description of it in the same way. err may be
 * NULL. */
int hvd_validate_pair(struct hvd_cached_tensor *cached,
                      const struct hvd_descriptor *other, struct hvd_error *err);

/* Writes a shape, "[2, 3]", in at most `bytes` bytes. */
void hvd_shape_format(const int64_t *shape, int ndim, char *text, size_t bytes);

#endif
