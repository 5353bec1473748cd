/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that all ranks have agreed on: finds this rank's tensors for the batch and runs
 * it. A batch can also create or remove a process set. */
#ifndef HVD_AGREED_BATCH_H
#define HVD_AGREED_BATCH_H

#include "collectives/agreement/codec.h"

struct hvd_agreement;

/* Parses a batch (batch.h), whose record the caller has already read, and carries it
 * out. */
int hvd_agreed_batch_take(struct hvd_agreement *agreement,
                          const struct hvd_record *record, struct hvd_reader *reader,
                          int64_t now_ns);

#endif
