/* SPDX-License-Identifier: Apache-2.0 */
/* A batch: tensors that all ranks have agreed to run together. */
#include "collectives/request/batch.h"

#include <stdlib.h>

struct hvd_batch *hvd_batch_create(const struct hvd_batch_header *header)
{
    struct hvd_batch *batch = calloc(1, sizeof(*batch));

    if (batch == NULL) {
        return NULL;
    }
    batch->header = *header;
    batch->header.text = "";
    batch->entries = calloc((size_t)header->count + 1, sizeof(batch->entries[0]));
    batch->rows = calloc((size_t)header->row_count + 1, sizeof(batch->rows[0]));
    if (batch->entries == NULL || batch->rows == NULL) {
        hvd_batch_destroy(batch);
        return NULL;
    }
    return batch;
}

void hvd_batch_destroy(struct hvd_batch *batch)
{
    if (batch == NULL) {
        return;
    }
    for (int64_t i = 0; batch->entries != NULL && i < batch->header.count; i++) {
        if (batch->entries[i] != NULL && batch->entries[i]->is_zeros) {
            hvd_entry_free_zeros(batch->entries[i]);
        }
    }
    free(batch->entries);
    free(batch->rows);
    free(batch);
}
