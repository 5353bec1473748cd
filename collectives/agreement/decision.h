/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions about batches on the wire: a record, the header, the tensors, the rows.
 *
 *   BATCH record (count: tensors)
 *   kind, set, lane, status, text, max_block, row_count, value
 *   then until all tensors are named, each a record:
 *     ids   count tensors, known by ids id, id + 1, ...
 *     full  one tensor, described in full; id is what it is known by from now on, 0: not known
 *   rows of each rank (allgather) */
#ifndef HVD_DECISION_H
#define HVD_DECISION_H

#include "collectives/agreement/batch.h"
#include "collectives/agreement/known.h"

enum hvd_tensor_form {
    HVD_TENSOR_IDS = 1,
    HVD_TENSOR_FULL,
};

void hvd_put_batch(struct hvd_writer *writer, const struct hvd_batch_header *header);

/* The BATCH record has been taken already. text is borrowed from the message. */
int hvd_take_batch(struct hvd_reader *reader, const struct hvd_record *record,
                   struct hvd_batch_header *header);

#endif
