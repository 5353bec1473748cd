/* SPDX-License-Identifier: Apache-2.0 */
/* A ring buffer of messages in memory that processes share. */
#include "collectives/transport/shm/byte_ring.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/hvd_status.h"

struct frame {
    uint32_t type;
    uint32_t bytes;
};

/* A queue longer than this is freed once it is empty. */
static const size_t keep_bytes = 256 << 10;

enum {
    ALIGNMENT = 8
};

static size_t padded_bytes(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t least_bytes(size_t a, size_t b)
{
    return a < b ? a : b;
}

void hvd_ring_writer_init(struct hvd_ring_writer *writer, const struct hvd_ring *ring)
{
    assert((ring->bytes & (ring->bytes - 1)) == 0 && ring->bytes >= 64);
    *writer = (struct hvd_ring_writer){.ring = *ring};
}

void hvd_ring_writer_finish(struct hvd_ring_writer *writer)
{
    free(writer->queue);
    *writer = (struct hvd_ring_writer){0};
}

void hvd_ring_reader_init(struct hvd_ring_reader *reader, const struct hvd_ring *ring,
                          int index)
{
    *reader = (struct hvd_ring_reader){.ring = *ring, .tail = &ring->tails[index]};
}

void hvd_ring_reader_finish(struct hvd_ring_reader *reader)
{
    free(reader->message);
    *reader = (struct hvd_ring_reader){0};
}

/* Returns the number of bytes that the slowest reader has yet to read; more than the ring
 * holds if the position of a reader is impossible. */
static uint64_t unread_bytes(const struct hvd_ring_writer *writer)
{
    uint64_t most = 0;

    for (int i = 0; i < writer->ring.readers; i++) {
        uint64_t left = writer->written - atomic_load(&writer->ring.tails[i].read);

        most = left > most ? left : most;
    }
    return most;
}

/* Returns how many bytes may be written: a multiple of 8, as all writes are. */
static size_t find_room(struct hvd_ring_writer *writer)
{
    uint64_t most = unread_bytes(writer);

    if (most > writer->ring.bytes || most % ALIGNMENT != 0) {
        writer->is_broken = true;
        return 0;
    }
    return writer->ring.bytes - (size_t)most;
}

/* Reads the positions of the readers, and thus their cache lines, only if needed. */
static bool has_room_for(struct hvd_ring_writer *writer, size_t bytes)
{
    if (writer->written + bytes <= writer->free_until) {
        return true;
    }
    writer->free_until = writer->written + find_room(writer);
    return writer->written + bytes <= writer->free_until;
}

/* Copies into the ring; readers see the bytes once they are published. */
static void put_bytes(struct hvd_ring_writer *writer, const void *from, size_t bytes)
{
    size_t at = (size_t)writer->written & (writer->ring.bytes - 1);
    size_t first = least_bytes(bytes, writer->ring.bytes - at);

    if (bytes > 0) {
        memcpy(writer->ring.data + at, from, first);
        memcpy(writer->ring.data, (const char *)from + first, bytes - first);
    }
    writer->written += padded_bytes(bytes);
}

static void publish_written(struct hvd_ring_writer *writer)
{
    atomic_store(&writer->ring.head->written, writer->written);
}

static void set_waiting(struct hvd_ring_writer *writer)
{
    uint32_t is_waiting = hvd_ring_is_waiting(writer) ? 1 : 0;

    if (atomic_load_explicit(&writer->ring.head->is_waiting, memory_order_relaxed) !=
        is_waiting) {
        atomic_store(&writer->ring.head->is_waiting, is_waiting);
    }
}

static void drop_empty_queue(struct hvd_ring_writer *writer)
{
    if (hvd_ring_is_waiting(writer)) {
        return;
    }
    writer->begin = 0;
    writer->end = 0;
    if (writer->capacity > keep_bytes) {
        free(writer->queue);
        writer->queue = NULL;
        writer->capacity = 0;
    }
}

/* Moves as much of the queue into the ring as fits. Returns true if it moved anything. */
static bool write_queue(struct hvd_ring_writer *writer)
{
    size_t bytes = least_bytes(find_room(writer), writer->end - writer->begin);

    if (bytes == 0) {
        return false;
    }
    put_bytes(writer, writer->queue + writer->begin, bytes);
    writer->begin += bytes;
    publish_written(writer);
    drop_empty_queue(writer);
    return true;
}

int hvd_ring_flush(struct hvd_ring_writer *writer, bool *wrote)
{
    if (hvd_ring_is_waiting(writer)) {
        *wrote |= write_queue(writer);
        set_waiting(writer);
        /* A reader that made room before it could see the flag does not notify this rank:
         * look again. */
        while (hvd_ring_is_waiting(writer) && write_queue(writer)) {
            *wrote = true;
        }
        set_waiting(writer);
    }
    return writer->is_broken ? HVD_ERR_ARG : 0;
}

/* Makes room for `bytes` more bytes at the end of the queue. */
static int reserve_queue(struct hvd_ring_writer *writer, size_t bytes)
{
    size_t used = writer->end - writer->begin;
    size_t capacity = writer->capacity > 4096 ? writer->capacity : 4096;
    char *queue;

    if (writer->capacity - writer->end >= bytes) {
        return 0;
    }
    while (capacity < 2 * used + bytes) { /* so that moving costs little per byte */
        capacity *= 2;
    }
    queue = malloc(capacity);
    if (queue == NULL) {
        return HVD_ERR_NOMEM;
    }
    if (used > 0) {
        memcpy(queue, writer->queue + writer->begin, used);
    }
    free(writer->queue);
    writer->queue = queue;
    writer->begin = 0;
    writer->end = used;
    writer->capacity = capacity;
    return 0;
}

static void append_bytes(struct hvd_ring_writer *writer, const void *from, size_t bytes)
{
    if (bytes > 0) {
        memcpy(writer->queue + writer->end, from, bytes);
        memset(writer->queue + writer->end + bytes, 0, padded_bytes(bytes) - bytes);
    }
    writer->end += padded_bytes(bytes);
}

int hvd_ring_send(struct hvd_ring_writer *writer, uint32_t type, const void *payload,
                  size_t bytes, bool *wrote)
{
    const struct frame frame = {.type = type, .bytes = (uint32_t)bytes};
    size_t total = sizeof(frame) + padded_bytes(bytes);

    if (bytes > HVD_RING_MAX_MESSAGE) {
        return HVD_ERR_ARG;
    }
    if (!hvd_ring_is_waiting(writer) && has_room_for(writer, total)) {
        put_bytes(writer, &frame, sizeof(frame));
        put_bytes(writer, payload, bytes);
        publish_written(writer);
        *wrote = true;
        return 0;
    }
    if (reserve_queue(writer, total) != 0) {
        return HVD_ERR_NOMEM;
    }
    append_bytes(writer, &frame, sizeof(frame));
    append_bytes(writer, payload, bytes);
    return hvd_ring_flush(writer, wrote);
}

void hvd_ring_look(struct hvd_ring_reader *reader)
{
    reader->seen = atomic_load(&reader->ring.head->written);
}

static const char *data_at(const struct hvd_ring_reader *reader, uint64_t cursor)
{
    return reader->ring.data + ((size_t)cursor & (reader->ring.bytes - 1));
}

/* Copies the part that has arrived of the message being assembled. */
static void collect_message(struct hvd_ring_reader *reader)
{
    size_t bytes = least_bytes((size_t)(reader->seen - reader->read),
                               padded_bytes(reader->bytes) - reader->have);
    const char *from = data_at(reader, reader->read);
    size_t first =
        least_bytes(bytes, (size_t)(reader->ring.data + reader->ring.bytes - from));

    memcpy(reader->message + reader->have, from, first);
    memcpy(reader->message + reader->have + first, reader->ring.data, bytes - first);
    reader->have += bytes;
    reader->read += bytes;
}

static bool is_whole(const struct hvd_ring_reader *reader)
{
    return reader->message != NULL && reader->have == padded_bytes(reader->bytes);
}

/* Whether the positions are plausible: the writer is at most a whole ring ahead of the
 * reader. */
static bool is_possible(const struct hvd_ring_reader *reader)
{
    uint64_t ahead = reader->seen - reader->read;

    return ahead <= reader->ring.bytes && ahead % ALIGNMENT == 0;
}

/* Reads the frame at the cursor. A message that is contiguous in the ring is not
 * copied. */
static int begin_message(struct hvd_ring_reader *reader, struct hvd_ring_message *message)
{
    struct frame frame;
    const char *payload = data_at(reader, reader->read + sizeof(frame));
    size_t room = (size_t)(reader->ring.data + reader->ring.bytes - payload);
    size_t total;

    memcpy(&frame, data_at(reader, reader->read), sizeof(frame));
    if (frame.bytes > HVD_RING_MAX_MESSAGE) {
        return HVD_ERR_ARG;
    }
    total = sizeof(frame) + padded_bytes(frame.bytes);
    if (reader->seen - reader->read >= total && frame.bytes <= room) {
        reader->read += total;
        *message = (struct hvd_ring_message){frame.type, payload, frame.bytes};
        return 0;
    }
    reader->message = malloc(padded_bytes(frame.bytes));
    if (reader->message == NULL) {
        return HVD_ERR_NOMEM;
    }
    reader->read += sizeof(frame);
    reader->type = frame.type;
    reader->bytes = frame.bytes;
    reader->have = 0;
    return HVD_INPROGRESS;
}

int hvd_ring_next(struct hvd_ring_reader *reader, struct hvd_ring_message *message)
{
    if (!is_possible(reader)) {
        return HVD_ERR_ARG;
    }
    if (is_whole(reader)) { /* the previous call returned this message */
        free(reader->message);
        reader->message = NULL;
    }
    if (reader->message == NULL) {
        int status = reader->read == reader->seen ? HVD_INPROGRESS
                                                  : begin_message(reader, message);

        if (status != HVD_INPROGRESS || reader->message == NULL) {
            return status;
        }
    }
    collect_message(reader);
    if (!is_whole(reader)) {
        return HVD_INPROGRESS;
    }
    *message = (struct hvd_ring_message){reader->type, reader->message, reader->bytes};
    return 0;
}

bool hvd_ring_release(struct hvd_ring_reader *reader)
{
    if (atomic_load_explicit(&reader->tail->read, memory_order_relaxed) == reader->read) {
        return false;
    }
    atomic_store(&reader->tail->read, reader->read);
    return atomic_load(&reader->ring.head->is_waiting) != 0;
}
