/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes the messages of the agreement: reports go up the tree, decisions
 * come down. */
#include "collectives/agreement/codec.h"

#include <string.h>

#include "collectives/request/batch.h"

/* The fixed part of a descriptor. All members are 8 bytes wide, so that there is no
 * padding. */
struct packed_descriptor {
    int64_t rank, set, kind, dtype, wire, op, root, device, is_numbered;
    double prescale, postscale;
    int64_t max_block, ndim;
};

void hvd_put_descriptor(struct hvd_writer *writer,
                        const struct hvd_descriptor *descriptor)
{
    const struct packed_descriptor packed = {
        .rank = descriptor->rank,
        .set = descriptor->set,
        .kind = descriptor->kind,
        .dtype = descriptor->dtype,
        .wire = descriptor->wire,
        .op = descriptor->op,
        .root = descriptor->root,
        .device = descriptor->device,
        .is_numbered = descriptor->call != 0,
        .prescale = descriptor->prescale,
        .postscale = descriptor->postscale,
        .max_block = descriptor->max_block,
        .ndim = descriptor->ndim,
    };

    hvd_put(writer, &packed, sizeof(packed));
    hvd_put(writer, descriptor->shape,
            (size_t)descriptor->ndim * sizeof(descriptor->shape[0]));
    hvd_put_int(writer, (int64_t)descriptor->group);
    hvd_put_int(writer, descriptor->group_size);
    hvd_put_text(writer, descriptor->name);
    hvd_put_text(writer, descriptor->note);
}

static bool is_within(int64_t value, int64_t least, int64_t most)
{
    return value >= least && value <= most;
}

/* Whether each number of a received descriptor is in its range. */
static bool is_possible(const struct packed_descriptor *packed)
{
    return is_within(packed->rank, 0, INT32_MAX) &&
           is_within(packed->set, 0, INT32_MAX) && hvd_kind_is_known(packed->kind) &&
           is_within(packed->dtype, 0, HVD_DTYPE_COUNT - 1) &&
           is_within(packed->wire, 0, HVD_DTYPE_COUNT - 1) &&
           is_within(packed->op, 0, HVD_OP_COUNT - 1) &&
           is_within(packed->root, INT32_MIN, INT32_MAX) &&
           is_within(packed->device, HVD_DEVICE_CPU, HVD_DESCRIPTOR_GPU) &&
           packed->max_block >= 0 && is_within(packed->ndim, 0, HVD_MAX_DIMS);
}

/* The largest tensor; the limit keeps sums over tensors from overflowing. */
static const int64_t most_bytes = (int64_t)1 << 48;

static bool has_possible_shape(const struct hvd_descriptor *descriptor)
{
    int64_t bytes = (int64_t)hvd_dtype_bytes(descriptor->dtype);

    for (int i = 0; i < descriptor->ndim; i++) {
        if (descriptor->shape[i] < 0 ||
            __builtin_mul_overflow(bytes, descriptor->shape[i], &bytes)) {
            return false;
        }
    }
    return bytes <= most_bytes;
}

static void unpack_descriptor(const struct packed_descriptor *packed,
                              struct hvd_descriptor *descriptor)
{
    descriptor->rank = (int32_t)packed->rank;
    descriptor->set = (int32_t)packed->set;
    descriptor->kind = (enum hvd_kind)packed->kind;
    descriptor->dtype = (enum hvd_dtype)packed->dtype;
    descriptor->wire = (int32_t)packed->wire;
    descriptor->op = (enum hvd_op)packed->op;
    descriptor->root = (int32_t)packed->root;
    descriptor->device = (int32_t)packed->device;
    descriptor->call = packed->is_numbered != 0;
    descriptor->prescale = packed->prescale;
    descriptor->postscale = packed->postscale;
    descriptor->max_block = packed->max_block;
    descriptor->ndim = (int32_t)packed->ndim;
}

int hvd_take_descriptor(struct hvd_reader *reader, struct hvd_descriptor *descriptor)
{
    const void *data = hvd_take(reader, sizeof(struct packed_descriptor));
    struct packed_descriptor packed;

    if (data == NULL) {
        return HVD_ERR_ARG;
    }
    memcpy(&packed, data, sizeof(packed)); /* it may be unaligned */
    if (!is_possible(&packed)) {
        return HVD_ERR_ARG;
    }
    unpack_descriptor(&packed, descriptor);
    data = hvd_take(reader, (size_t)descriptor->ndim * sizeof(descriptor->shape[0]));
    if (data != NULL) {
        memcpy(descriptor->shape, data,
               (size_t)descriptor->ndim * sizeof(descriptor->shape[0]));
    }
    descriptor->group = (uint64_t)hvd_take_int(reader);
    descriptor->group_size = (int32_t)hvd_take_int(reader);
    descriptor->name = hvd_take_text(reader);
    descriptor->note = hvd_take_text(reader);
    return reader->failed || descriptor->group_size < 0 || !has_possible_shape(descriptor)
               ? HVD_ERR_ARG
               : 0;
}

void hvd_put_record(struct hvd_writer *writer, uint32_t kind, uint32_t count, uint64_t id)
{
    const struct hvd_record record = {.kind = kind, .count = count, .id = id};

    hvd_put(writer, &record, sizeof(record));
}

int hvd_take_record(struct hvd_reader *reader, struct hvd_record *record)
{
    const void *data = hvd_take(reader, sizeof(*record));

    if (data == NULL) {
        return HVD_ERR_ARG;
    }
    memcpy(record, data, sizeof(*record));
    return 0;
}

void hvd_put_ids_end(struct hvd_writer *writer, uint32_t kind, struct hvd_id_range *range)
{
    if (range->count > 0) {
        hvd_put_record(writer, kind, range->count, range->first);
        range->count = 0;
    }
}

struct hvd_part hvd_part_begin(struct hvd_decision_writers *writers, int set)
{
    struct hvd_part part = {
        .writer = set == HVD_SET_GLOBAL ? &writers->global : &writers->sets, .set = set};

    part.has_record = part.writer == &writers->sets;

    part.begin_at = part.writer->bytes;
    if (part.has_record) {
        hvd_put_record(part.writer, HVD_DECISION_SET, 0, (uint64_t)set);
    }
    return part;
}

void hvd_part_end(const struct hvd_part *part)
{
    struct hvd_record record = {.kind = HVD_DECISION_SET, .id = (uint64_t)part->set};

    if (part->has_record && !part->writer->failed) {
        record.count = (uint32_t)(part->writer->bytes - part->begin_at - sizeof(record));
        memcpy(part->writer->data + part->begin_at, &record, sizeof(record));
    }
}

void hvd_put_id(struct hvd_writer *writer, uint32_t kind, struct hvd_id_range *range,
                uint64_t id)
{
    if (range->count > 0 && id == range->first + range->count) {
        range->count++;
        return;
    }
    hvd_put_ids_end(writer, kind, range);
    *range = (struct hvd_id_range){.first = id, .count = 1};
}

void hvd_put_batch(struct hvd_writer *writer, const struct hvd_batch_header *header)
{
    hvd_put_record(writer, HVD_DECISION_BATCH, (uint32_t)header->count, 0);
    hvd_put_int(writer, header->kind);
    hvd_put_int(writer, header->set);
    hvd_put_int(writer, header->priority);
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
    int64_t priority = hvd_take_int(reader), status = hvd_take_int(reader);

    header->count = record->count;
    header->kind = (enum hvd_kind)kind;
    header->set = (int32_t)set;
    header->priority = (enum hvd_priority)priority;
    header->status = (int)status;
    header->text = hvd_take_text(reader);
    header->max_block = hvd_take_int(reader);
    header->row_count = hvd_take_int(reader);
    header->value = hvd_take_int(reader);
    return reader->failed || !hvd_kind_is_known(kind) || set < 0 || set > INT32_MAX ||
                   priority < 0 || priority >= HVD_PRIORITIES || status > 0 ||
                   status < INT32_MIN || header->row_count < 0 || header->max_block < 0
               ? HVD_ERR_ARG
               : 0;
}
