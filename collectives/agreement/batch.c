/* SPDX-License-Identifier: Apache-2.0 */
/* Batches, and the encoding of a decision about one. */
#include "collectives/agreement/batch.h"

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
        if (batch->entries[i] != NULL && batch->entries[i]->is_absent) {
            hvd_entry_free_absent(batch->entries[i]);
        }
    }
    free(batch->entries);
    free(batch->rows);
    free(batch);
}

bool hvd_batch_is_on_device(const struct hvd_batch *batch)
{
    return batch->header.count > 0 &&
           batch->entries[0]->proposal.device != HVD_DEVICE_CPU;
}

/* --- the decision about a batch, encoded --- */

void hvd_put_batch(struct hvd_writer *writer, const struct hvd_batch_header *header)
{
    hvd_put_record(writer, HVD_DECISION_BATCH, (uint32_t)header->count, 0);
    hvd_put_int(writer, header->kind);
    hvd_put_int(writer, header->set);
    hvd_put_int(writer, header->lane);
    hvd_put_int(writer, header->status);
    hvd_put_text(writer, header->text);
    hvd_put_int(writer, header->max_block);
    hvd_put_int(writer, header->row_count);
    hvd_put_int(writer, header->value);
}

int hvd_take_batch(struct hvd_reader *reader, const struct hvd_record *record,
                   struct hvd_batch_header *header)
{
    int64_t kind = hvd_take_int(reader), set = hvd_take_int(reader);
    int64_t lane = hvd_take_int(reader), status = hvd_take_int(reader);

    header->count = record->count;
    header->kind = (enum hvd_kind)kind;
    header->set = (int32_t)set;
    header->lane = (enum hvd_lane)lane;
    header->status = (int)status;
    header->text = hvd_take_text(reader);
    header->max_block = hvd_take_int(reader);
    header->row_count = hvd_take_int(reader);
    header->value = hvd_take_int(reader);
    return reader->failed || !hvd_kind_is_known(kind) || set < 0 || set > INT32_MAX ||
                   lane < 0 || lane >= HVD_LANES || status > 0 || status < INT32_MIN ||
                   header->row_count < 0 || header->max_block < 0
               ? HVD_ERR_ARG
               : 0;
}
