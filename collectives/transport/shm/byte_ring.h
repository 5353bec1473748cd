/* SPDX-License-Identifier: Apache-2.0 */
/* A ring buffer of messages in memory shared by two or more processes: one process
 * writes, and each reader reads all messages in order.
 *
 *   in the ring: | type (4) | bytes (4) | payload, padded to 8 | type ...
 *
 * A message may be larger than the ring: it is written in pieces, and the reader
 * assembles them. Nothing blocks: messages that do not fit wait in the writer's private
 * memory.
 *
 * The shared part is checked before it is used: impossible positions and messages that
 * are too long give HVD_ERR_ARG, in this call and all later ones. The caller checks the
 * payload.
 *
 * Sleeping: `written`, `read` and `is_waiting` are accessed with sequential consistency
 * wherever a side could otherwise miss a change and fall asleep; see mail.h.
 *
 * Threads: one at a time per writer and per reader. */
#ifndef HVD_BYTE_RING_H
#define HVD_BYTE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The shared part, zeroed at first. Each struct has two cache lines: because of
 * adjacent-line prefetch, the writer of one would otherwise slow down the readers of the
 * next. */
struct hvd_ring_head {
    _Alignas(128) _Atomic uint64_t written; /* set by the writer: bytes since the start */
    _Atomic uint32_t is_waiting; /* set by the writer: it waits for room */
};
struct hvd_ring_tail {
    _Alignas(128) _Atomic uint64_t read; /* set by a reader: bytes since the start */
};

/* The memory of a ring; borrowed. */
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
    uint64_t free_until; /* readers have left room at least up to this position */
    bool is_broken; /* a reader's position was impossible */
    char *queue; /* bytes [begin, end) wait for room, in the same format as in the ring */
    size_t begin;
    size_t end;
    size_t capacity;
};

struct hvd_ring_reader {
    struct hvd_ring ring;
    struct hvd_ring_tail *tail; /* the tail of this reader */
    uint64_t read;
    uint64_t seen; /* last value read from head->written */
    char *message; /* the message being assembled, or NULL */
    uint32_t type;
    size_t bytes;
    size_t have; /* bytes assembled, including padding */
};

struct hvd_ring_message {
    uint32_t type;
    /* Aligned to 8, borrowed, valid until the next call for this reader. */
    const void *payload;
    size_t bytes;
};

/* The structs must be zeroed or fresh, and the shared part zeroed. finish also accepts
 * zeroed structs. */
void hvd_ring_writer_init(struct hvd_ring_writer *writer, const struct hvd_ring *ring);
void hvd_ring_writer_finish(struct hvd_ring_writer *writer);
void hvd_ring_reader_init(struct hvd_ring_reader *reader, const struct hvd_ring *ring,
                          int index);
void hvd_ring_reader_finish(struct hvd_ring_reader *reader);

/* Writes a message, or queues it. Sets *wrote if the ring has new bytes. Returns 0,
 * HVD_ERR_NOMEM if no part of the message was sent, or HVD_ERR_ARG if it is too long or
 * the ring is damaged (see above). */
int hvd_ring_send(struct hvd_ring_writer *writer, uint32_t type, const void *payload,
                  size_t bytes, bool *wrote);

/* Writes as many of the waiting bytes as fit; sets *wrote if the ring has new bytes. If
 * some bytes still wait, hvd_ring_release returns true to a reader that makes room from
 * now on. Returns 0 or HVD_ERR_ARG. */
int hvd_ring_flush(struct hvd_ring_writer *writer, bool *wrote);

/* Whether bytes wait for room. */
static inline bool hvd_ring_is_waiting(const struct hvd_ring_writer *writer)
{
    return writer->begin < writer->end;
}

/* Reads how far the writer has written: hvd_ring_next returns the messages up to
 * there. */
void hvd_ring_look(struct hvd_ring_reader *reader);

/* Returns 0 and the next message; HVD_INPROGRESS if no complete message is left;
 * HVD_ERR_NOMEM; HVD_ERR_ARG. */
int hvd_ring_next(struct hvd_ring_reader *reader, struct hvd_ring_message *message);

/* Frees the room of all messages that were read. Returns true if the writer waits for
 * room. */
bool hvd_ring_release(struct hvd_ring_reader *reader);

/* Whether there is something to read. */
static inline bool hvd_ring_has_mail(const struct hvd_ring_reader *reader)
{
    return atomic_load(&reader->ring.head->written) != reader->read;
}

#endif
