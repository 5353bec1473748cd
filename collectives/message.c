/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks tell each other while they agree: proposals go up the tree, batches come down. */
#include "collectives/message.h"

#include <stdlib.h>
#include <string.h>

const char *hvd_kind_name(enum hvd_kind kind)
{
    static const char *const names[] = {"ALLREDUCE", "ALLGATHER",    "BROADCAST",
                                        "JOIN",      "ADASUM",       "ALLTOALL",
                                        "BARRIER",   "REDUCESCATTER"};

    return (unsigned)kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "UNKNOWN";
}

void hvd_writer_finish(struct hvd_writer *writer)
{
    free(writer->data);
    *writer = (struct hvd_writer){0};
}

static bool writer_reserve(struct hvd_writer *writer, size_t bytes)
{
    size_t capacity = writer->capacity > 0 ? writer->capacity : 512;
    char *data;

    if (writer->failed) {
        return false;
    }
    while (capacity - writer->bytes < bytes) {
        capacity *= 2;
    }
    if (capacity == writer->capacity) {
        return true;
    }
    data = realloc(writer->data, capacity);
    if (data == NULL) {
        writer->failed = true;
        return false;
    }
    writer->data = data;
    writer->capacity = capacity;
    return true;
}

void hvd_put(struct hvd_writer *writer, const void *data, size_t bytes)
{
    if (bytes > 0 && writer_reserve(writer, bytes)) {
        memcpy(writer->data + writer->bytes, data, bytes);
        writer->bytes += bytes;
    }
}

void hvd_put_int(struct hvd_writer *writer, int64_t value)
{
    hvd_put(writer, &value, sizeof(value));
}

void hvd_put_text(struct hvd_writer *writer, const char *text)
{
    size_t bytes = strlen(text) + 1;

    hvd_put_int(writer, (int64_t)bytes);
    hvd_put(writer, text, bytes);
}

const void *hvd_take(struct hvd_reader *reader, size_t bytes)
{
    const char *data = reader->data;

    if (reader->failed || bytes > reader->bytes) {
        reader->failed = true;
        return NULL;
    }
    reader->data += bytes;
    reader->bytes -= bytes;
    return data;
}

int64_t hvd_take_int(struct hvd_reader *reader)
{
    const void *data = hvd_take(reader, sizeof(int64_t));
    int64_t value = 0;

    if (data != NULL) {
        memcpy(&value, data, sizeof(value));
    }
    return value;
}

const char *hvd_take_text(struct hvd_reader *reader)
{
    int64_t bytes = hvd_take_int(reader);
    const char *text = bytes > 0 ? hvd_take(reader, (size_t)bytes) : NULL;

    if (text == NULL || text[bytes - 1] != '\0') {
        reader->failed = true;
        return "";
    }
    return text;
}

static void put_double(struct hvd_writer *writer, double value)
{
    hvd_put(writer, &value, sizeof(value));
}

static double take_double(struct hvd_reader *reader)
{
    const void *data = hvd_take(reader, sizeof(double));
    double value = 0;

    if (data != NULL) {
        memcpy(&value, data, sizeof(value));
    }
    return value;
}

void hvd_put_proposal(struct hvd_writer *writer, const struct hvd_proposal *proposal)
{
    hvd_put_int(writer, proposal->rank);
    hvd_put_int(writer, proposal->set);
    hvd_put_int(writer, proposal->kind);
    hvd_put_int(writer, proposal->dtype);
    hvd_put_int(writer, proposal->op);
    hvd_put_int(writer, proposal->root);
    hvd_put_int(writer, proposal->device);
    put_double(writer, proposal->prescale);
    put_double(writer, proposal->postscale);
    hvd_put_int(writer, proposal->max_block);
    hvd_put_int(writer, proposal->ndim);
    hvd_put(writer, proposal->shape, (size_t)proposal->ndim * sizeof(proposal->shape[0]));
    hvd_put_text(writer, proposal->name);
}

int hvd_take_proposal(struct hvd_reader *reader, struct hvd_proposal *proposal)
{
    const void *shape;

    proposal->rank = (int32_t)hvd_take_int(reader);
    proposal->set = (int32_t)hvd_take_int(reader);
    proposal->kind = (enum hvd_kind)hvd_take_int(reader);
    proposal->dtype = (enum hvd_dtype)hvd_take_int(reader);
    proposal->op = (enum hvd_op)hvd_take_int(reader);
    proposal->root = (int32_t)hvd_take_int(reader);
    proposal->device = (int32_t)hvd_take_int(reader);
    proposal->prescale = take_double(reader);
    proposal->postscale = take_double(reader);
    proposal->max_block = hvd_take_int(reader);
    proposal->ndim = (int32_t)hvd_take_int(reader);
    if (reader->failed || proposal->ndim < 0 || proposal->ndim > HVD_MAX_DIMS) {
        return HVD_ERR_ARG;
    }
    shape = hvd_take(reader, (size_t)proposal->ndim * sizeof(proposal->shape[0]));
    if (shape != NULL) {
        memcpy(proposal->shape, shape,
               (size_t)proposal->ndim * sizeof(proposal->shape[0]));
    }
    proposal->name = hvd_take_text(reader);
    return reader->failed ? HVD_ERR_ARG : 0;
}

void hvd_put_batch_header(struct hvd_writer *writer,
                          const struct hvd_batch_header *header)
{
    hvd_put_int(writer, header->kind);
    hvd_put_int(writer, header->set);
    hvd_put_int(writer, header->lane);
    hvd_put_int(writer, header->status);
    hvd_put_text(writer, header->text);
    hvd_put_int(writer, header->max_block);
    hvd_put_int(writer, header->count);
    hvd_put_int(writer, header->row_count);
}

int hvd_take_batch_header(struct hvd_reader *reader, struct hvd_batch_header *header)
{
    header->kind = (enum hvd_kind)hvd_take_int(reader);
    header->set = (int32_t)hvd_take_int(reader);
    header->lane = (int32_t)hvd_take_int(reader);
    header->status = (int)hvd_take_int(reader);
    header->text = hvd_take_text(reader);
    header->max_block = hvd_take_int(reader);
    header->count = hvd_take_int(reader);
    header->row_count = hvd_take_int(reader);
    return reader->failed || header->lane < 0 || header->lane >= HVD_LANES ||
                   header->count < 1 || header->row_count < 0
               ? HVD_ERR_ARG
               : 0;
}

int hvd_take_batch_tensor(struct hvd_reader *reader,
                          const struct hvd_batch_header *header,
                          struct hvd_batch_tensor *tensor)
{
    tensor->name = hvd_take_text(reader);
    tensor->rows = hvd_take(reader, (size_t)header->row_count * sizeof(int64_t));
    return reader->failed ? HVD_ERR_ARG : 0;
}
