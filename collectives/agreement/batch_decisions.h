/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions about batches: which of this rank's tensors take part; and what all ranks have agreed on
 * is done. */
#ifndef HVD_BATCH_DECISIONS_H
#define HVD_BATCH_DECISIONS_H

#include "collectives/agreement/message.h"

struct hvd_agreement;

/* Takes a decision (batch.h), whose record has been taken already, and carries it out. */
int hvd_batch_decision_take(struct hvd_agreement *agreement,
                            const struct hvd_record *record, struct hvd_reader *reader,
                            int64_t now_ns);

#endif
