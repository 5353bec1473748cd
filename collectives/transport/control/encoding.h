/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes messages. Integers are in host order: all ranks of a job have the
 * same byte order. */
#ifndef HVD_ENCODING_H
#define HVD_ENCODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing byte string. If an allocation fails, `failed` is set and later puts do
 * nothing. */
struct hvd_writer {
    char *data;
    size_t bytes;
    size_t capacity;
    bool failed;
};

void hvd_writer_finish(struct hvd_writer *writer);
void hvd_put(struct hvd_writer *writer, const void *data, size_t bytes);
void hvd_put_int(struct hvd_writer *writer, int64_t value);
/* NULL is written as "" */
void hvd_put_text(struct hvd_writer *writer, const char *text);

/* Decodes the output of a writer. Reading beyond the end sets `failed` and returns 0 or
 * "". */
struct hvd_reader {
    const char *data;
    size_t bytes;
    bool failed;
};

const void *hvd_take(struct hvd_reader *reader,
                     size_t bytes); /* borrowed from the message; NULL on failure */
int64_t hvd_take_int(struct hvd_reader *reader);
const char *hvd_take_text(struct hvd_reader *reader); /* borrowed from the message */

#endif
