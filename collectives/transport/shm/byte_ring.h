/* SPDX-License-Identifier: Apache-2.0 */
/* A ring buffer of messages in memory that two or more processes share: one writes,
 * each reader reads all messages in order.
 *
 *   in the ring: | type (4) | bytes (4) | payload, padded to 8 | type ...
 *
 * A message may be larger than the ring: it is sent in pieces, and the reader puts it
 * together. Nothing blocks: messages that find no room wait in the writer's private
 * memory.
 *
 * The shared part is checked before it is used: positions that no reader or writer can
 * have, or a message that is too long, are HVD_ERR_ARG, also in all later calls. What
 * a payload says is for the caller to check.
 *
 * Sleeping: all accesses to `written`, `read` and `is_waiting` that one side must not
 * miss before it sleeps are sequentially consistent; see mail.h.
 *
 * Threads: one at a time per writer and per reader. */
#ifndef HVD_BYTE_RING_H
#define HVD_BYTE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The shared part, zero at first. Two cache lines each: adjacent-line prefetch would
 * make the writer of one disturb the reader of the next. */
struct hvd_ring_head {
    _Alignas(128) _Atomic uint64_t written; /* bytes since the start; the writer's */
    _Atomic uint32_t is_waiting; /* the writer wants to hear of room; the writer's */
};
struct hvd_ring_tail {
    _Alignas(128) _Atomic uint64_t read; /* bytes since the start; one reader's */
};

/* Where a ring lies; borrowed. */
struct hvd_ring {
    struct hvd_ring_head *head;
    struct hvd_ring_tail *tails; /* [readers] */
    int readers;
    char *data; /* aligned to 8 */
    size_t bytes; /* a power of two, at least 64 */
};

#define HVD_RING_MAX_MESSAGE ((size_t)64 << 20)

struct hvd_ring_writer {
    struct hvd_ring ring;
    uint64_t written;
    uint64_t free_until; /* readers have been seen to leave room to here at least */
    bool is_broken; /* a reader's position was impossible */
    char *queue; /* what waits: bytes [begin, end) as they will stand in the ring */
    size_t begin;
    size_t end;
    size_t capacity;
};

struct hvd_ring_reader {
    struct hvd_ring ring;
    struct hvd_ring_tail *tail; /* mine */
    uint64_t read;
    uint64_t seen; /* of head->written */
    char *message; /* being put together; NULL: none */
    uint32_t type;
    size_t bytes;
    size_t have; /* padding counts */
};

struct hvd_ring_message {
    uint32_t type;
    /* aligned to 8, borrowed, valid until the next call for the reader */
    const void *payload;
    size_t bytes;
};

/* On zeroed or fresh structs; the shared part must be zero. finish takes zeroed ones
 * too. */
void hvd_ring_writer_init(struct hvd_ring_writer *writer, const struct hvd_ring *ring);
void hvd_ring_writer_finish(struct hvd_ring_writer *writer);
void hvd_ring_reader_init(struct hvd_ring_reader *reader, const struct hvd_ring *ring,
                          int index);
void hvd_ring_reader_finish(struct hvd_ring_reader *reader);

/* Writes a message, or has it wait. *wrote is set when something is new in the ring.
 * Returns 0, HVD_ERR_NOMEM with nothing of this message sent, or HVD_ERR_ARG: see
 * above, or too long. */
int hvd_ring_send(struct hvd_ring_writer *writer, uint32_t type, const void *payload,
                  size_t bytes, bool *wrote);

/* Writes as much of the waiting bytes as there is room for; *wrote is set when
 * something is new. If some still wait, a reader that makes room from now on sees it
 * (hvd_ring_release). Returns 0 or HVD_ERR_ARG. */
int hvd_ring_flush(struct hvd_ring_writer *writer, bool *wrote);

/* Some bytes wait for room. */
static inline bool hvd_ring_is_waiting(const struct hvd_ring_writer *writer)
{
    return writer->begin < writer->end;
}

/* Notes how far the writer has come: `next` returns the messages up to there. */
void hvd_ring_look(struct hvd_ring_reader *reader);

/* 0 and the next message; HVD_INPROGRESS when no whole one is left; HVD_ERR_NOMEM,
 * HVD_ERR_ARG. */
int hvd_ring_next(struct hvd_ring_reader *reader, struct hvd_ring_message *message);

/* Gives back the room of all that was read. True when the writer waits for it. */
bool hvd_ring_release(struct hvd_ring_reader *reader);

/* There is something to read. */
static inline bool hvd_ring_has_mail(const struct hvd_ring_reader *reader)
{
    return atomic_load(&reader->ring.head->written) != reader->read;
}

#endif
