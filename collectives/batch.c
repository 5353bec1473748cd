/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that all ranks of a process set have agreed to run together. */
#include "collectives/batch.h"

#include <stdlib.h>

struct hvd_batch *hvd_batch_create(const struct hvd_batch_header *header)
{
    struct hvd_batch *batch = calloc(1, sizeof(*batch));

    if (batch == NULL) {
        return NULL;
    }
    batch->header = *header;
    batch->header.text = "";
    batch->entries = calloc((size_t)header->count, sizeof(batch->entries[0]));
    batch->rows = calloc((size_t)header->row_count + 1, sizeof(batch->rows[0]));
    if (batch->entries == NULL || batch->rows == NULL) {
        hvd_batch_destroy(batch);
        return NULL;
    }
    return batch;
}

void hvd_batch_destroy(struct hvd_batch *batch)
{
    if (batch != NULL) {
        free(batch->entries);
        free(batch->rows);
        free(batch);
    }
}
