/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes messages. */
#include "collectives/transport/control/encoding.h"

#include <stdlib.h>
#include <string.h>

void hvd_writer_finish(struct hvd_writer *writer)
{
    free(writer->data);
    *writer = (struct hvd_writer){0};
}

/* Makes room for `bytes` more bytes. */
static bool grow_writer(struct hvd_writer *writer, size_t bytes)
{
    size_t capacity = writer->capacity > 0 ? writer->capacity : 512;
    char *data;

    while (capacity - writer->bytes < bytes) {
        capacity *= 2;
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
    if (bytes == 0 || writer->failed ||
        (writer->capacity - writer->bytes < bytes && !grow_writer(writer, bytes))) {
        return;
    }
    memcpy(writer->data + writer->bytes, data, bytes);
    writer->bytes += bytes;
}

void hvd_put_int(struct hvd_writer *writer, int64_t value)
{
    hvd_put(writer, &value, sizeof(value));
}

void hvd_put_text(struct hvd_writer *writer, const char *text)
{
    const char *written = text != NULL ? text : "";
    size_t bytes = strlen(written) + 1;

    hvd_put_int(writer, (int64_t)bytes);
    hvd_put(writer, written, bytes);
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
