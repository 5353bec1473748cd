/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between a node's leader and its local ranks through shared memory.
 *
 *   [ heads | tails upwards | tails downwards ][ ring down ][ ring up of 1 | of 2 | ... ]
 *
 * heads, tails: one of each for each local rank. The head of local rank 0 is that of the ring
 * down; its tails are not used. */
#include "collectives/transport/control/mailbox.h"

#include <assert.h>
#include <stdlib.h>

#include "collectives/transport/shm/byte_ring.h"
#include "gpu_binding/base/log.h"

/* A whole step's proposals of a rank that nobody knows yet, about 100 bytes per tensor, and
 * the answer to those of all ranks, fit most models; what is larger passes in pieces. */
static const size_t up_bytes = 32 << 10;
static const size_t down_bytes = 128 << 10;

struct hvd_mailbox {
    int local_rank;
    int local_size;
    bool is_delivering;
    struct hvd_ring_writer writer;
    struct hvd_ring_reader *readers; /* of the leader: [local_size], by local rank */
    bool *rings; /* [local_size] who must be woken */
};

size_t hvd_mailbox_bytes(int local_size)
{
    size_t n = (size_t)local_size;

    return n * (sizeof(struct hvd_ring_head) + 2 * sizeof(struct hvd_ring_tail)) +
           down_bytes + (n - 1) * up_bytes;
}

static struct hvd_ring locate(char *memory, int local_rank, int local_size)
{
    struct hvd_ring_head *heads = (struct hvd_ring_head *)memory;
    struct hvd_ring_tail *up = (struct hvd_ring_tail *)(heads + local_size);
    struct hvd_ring_tail *down = up + local_size;
    char *data = (char *)(down + local_size);

    if (local_rank == 0) {
        return (struct hvd_ring){
            .head = heads,
            .tails = down + 1,
            .readers = local_size - 1,
            .data = data,
            .bytes = down_bytes,
        };
    }
    return (struct hvd_ring){
        .head = heads + local_rank,
        .tails = up + local_rank,
        .readers = 1,
        .data = data + down_bytes + (size_t)(local_rank - 1) * up_bytes,
        .bytes = up_bytes,
    };
}

static void open_rings(struct hvd_mailbox *box, void *memory)
{
    struct hvd_ring ring = locate(memory, box->local_rank, box->local_size);

    hvd_ring_writer_init(&box->writer, &ring);
    if (box->local_rank > 0) {
        ring = locate(memory, 0, box->local_size);
        hvd_ring_reader_init(&box->readers[0], &ring, box->local_rank - 1);
        return;
    }
    for (int i = 1; i < box->local_size; i++) {
        ring = locate(memory, i, box->local_size);
        hvd_ring_reader_init(&box->readers[i], &ring, 0);
    }
}

int hvd_mailbox_create(void *memory, int local_rank, int local_size,
                       struct hvd_mailbox **out, struct hvd_error *err)
{
    struct hvd_mailbox *box = calloc(1, sizeof(*box));

    assert((uintptr_t)memory % _Alignof(struct hvd_ring_head) == 0);
    if (box != NULL) {
        box->readers = calloc((size_t)local_size, sizeof(*box->readers));
        box->rings = calloc((size_t)local_size, sizeof(*box->rings));
    }
    if (box == NULL || box->readers == NULL || box->rings == NULL) {
        hvd_mailbox_destroy(box);
        return hvd_fail(err, HVD_ERR_NOMEM, "out of memory");
    }
    box->local_rank = local_rank;
    box->local_size = local_size;
    open_rings(box, memory);
    *out = box;
    return 0;
}

void hvd_mailbox_destroy(struct hvd_mailbox *box)
{
    if (box == NULL) {
        return;
    }
    hvd_ring_writer_finish(&box->writer);
    for (int i = 0; i < box->local_size; i++) {
        hvd_ring_reader_finish(&box->readers[i]);
    }
    free(box->readers);
    free(box->rings);
    free(box);
}

/* This rank reads the ring of these local ranks: all others, or the leader. */
static int first_sender(const struct hvd_mailbox *box)
{
    return box->local_rank == 0 ? 1 : 0;
}

static int last_sender(const struct hvd_mailbox *box)
{
    return box->local_rank == 0 ? box->local_size - 1 : 0;
}

/* Those who read what this rank writes are those whose messages it reads. */
static void ring_readers(struct hvd_mailbox *box)
{
    for (int i = first_sender(box); i <= last_sender(box); i++) {
        box->rings[i] = true;
    }
}

int hvd_mailbox_send(struct hvd_mailbox *box, uint32_t type, const void *payload,
                     size_t bytes)
{
    bool wrote = false;
    int status;

    if (box->local_size == 1) {
        return 0;
    }
    status = hvd_ring_send(&box->writer, type, payload, bytes, &wrote);
    if (wrote) {
        ring_readers(box);
    }
    return status;
}

/* All messages of one sender that were there when this began. */
static int deliver(struct hvd_mailbox *box, int from, hvd_mailbox_handler handler,
                   void *context)
{
    struct hvd_ring_reader *reader = &box->readers[from];
    struct hvd_ring_message message;
    int delivered = 0;
    int status;

    hvd_ring_look(reader);
    while ((status = hvd_ring_next(reader, &message)) == 0) {
        handler(context, from, message.type, message.payload, message.bytes);
        delivered++;
    }
    if (status == HVD_ERR_ARG) {
        hvd_log(
            HVD_LOG_ERROR,
            "what local rank %d has written for local rank %d is no message: the shared "
            "memory of this node is damaged",
            from, box->local_rank);
    }
    if (hvd_ring_release(reader)) {
        box->rings[from] = true;
    }
    return status < 0 ? status : delivered;
}

int hvd_mailbox_progress(struct hvd_mailbox *box, hvd_mailbox_handler handler,
                         void *context)
{
    bool wrote = false;
    int delivered = 0;
    int status = 0, flushed;

    assert(!box->is_delivering);
    box->is_delivering = true;
    for (int i = first_sender(box); i <= last_sender(box) && status >= 0; i++) {
        status = deliver(box, i, handler, context);
        delivered += status;
    }
    box->is_delivering = false;
    flushed = hvd_ring_flush(&box->writer, &wrote);
    if (flushed != 0) {
        hvd_log(HVD_LOG_ERROR,
                "a rank of this node has read more than local rank %d has written: the "
                "shared memory of this node is damaged",
                box->local_rank);
    }
    if (wrote) {
        ring_readers(box);
    }
    status = status < 0 ? status : flushed;
    return status < 0 ? status : delivered;
}

bool hvd_mailbox_is_pending(const struct hvd_mailbox *box)
{
    return hvd_ring_is_waiting(&box->writer);
}

bool hvd_mailbox_has_mail(const struct hvd_mailbox *box)
{
    for (int i = first_sender(box); i <= last_sender(box); i++) {
        if (hvd_ring_has_mail(&box->readers[i])) {
            return true;
        }
    }
    return hvd_ring_has_room(&box->writer);
}

bool hvd_mailbox_take_ring(struct hvd_mailbox *box, int local_rank)
{
    bool must_ring = box->rings[local_rank];

    box->rings[local_rank] = false;
    return must_ring;
}
