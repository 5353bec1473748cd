/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that all ranks have agreed on: finds the tensors of this rank that take part,
 * and runs the batch, or changes the set that it is about. */
#ifndef HVD_AGREED_BATCH_H
#define HVD_AGREED_BATCH_H

#include "collectives/agreement/codec.h"

struct hvd_agreement;

/* Takes a decision (batch.h), whose record has been taken already, and carries it out. */
int hvd_agreed_batch_take(struct hvd_agreement *agreement,
                          const struct hvd_record *record, struct hvd_reader *reader,
                          int64_t now_ns);

#endif
