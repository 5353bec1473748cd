/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions about batches on the wire. */
#include "collectives/agreement/decision.h"

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
    hvd_put_int(writer, header->is_shared);
    hvd_put_int(writer, header->value);
}

int hvd_take_batch(struct hvd_reader *reader, const struct hvd_record *record,
                   struct hvd_batch_header *header)
{
    header->count = record->count;
    header->kind = (enum hvd_kind)hvd_take_int(reader);
    header->set = (int32_t)hvd_take_int(reader);
    header->lane = (enum hvd_lane)hvd_take_int(reader);
    header->status = (int)hvd_take_int(reader);
    header->text = hvd_take_text(reader);
    header->max_block = hvd_take_int(reader);
    header->row_count = hvd_take_int(reader);
    header->is_shared = hvd_take_int(reader) != 0;
    header->value = hvd_take_int(reader);
    return reader->failed || header->row_count < 0 || (unsigned)header->lane >= HVD_LANES
               ? HVD_ERR_ARG
               : 0;
}
