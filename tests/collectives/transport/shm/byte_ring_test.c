/* SPDX-License-Identifier: Apache-2.0 */
/* A ring with contents that the other side cannot have written is an error, and nothing
 * outside of the ring is read or written. */
#include "collectives/transport/shm/byte_ring.h"

#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/hvd_status.h"
#include "tests/tap.h"

enum {
    BYTES = 256,
    READERS = 2,
    FRAME = 8,
    GUARD = 4096,
};

struct pair {
    struct hvd_ring_head head;
    struct hvd_ring_tail tails[READERS];
    _Alignas(8) char data[BYTES];
    char guard[GUARD]; /* bytes behind the ring */
    struct hvd_ring ring;
    struct hvd_ring_writer writer;
    struct hvd_ring_reader reader;
};

static struct pair pair;

static void open_pair(void)
{
    memset(&pair, 0, sizeof(pair));
    memset(pair.guard, 77, sizeof(pair.guard));
    pair.ring = (struct hvd_ring){.head = &pair.head,
                                  .tails = pair.tails,
                                  .readers = READERS,
                                  .data = pair.data,
                                  .bytes = BYTES};
    hvd_ring_writer_init(&pair.writer, &pair.ring);
    hvd_ring_reader_init(&pair.reader, &pair.ring, 0);
}

static void close_pair(void)
{
    hvd_ring_writer_finish(&pair.writer);
    hvd_ring_reader_finish(&pair.reader);
}

static bool is_guard_whole(void)
{
    for (int i = 0; i < GUARD; i++) {
        if (pair.guard[i] != 77) {
            return false;
        }
    }
    return true;
}

static int send(size_t bytes)
{
    static const char payload[2 * BYTES] = "hello";
    bool wrote;

    return hvd_ring_send(&pair.writer, 5, payload, bytes, &wrote);
}

/* Reads all messages, but at most 1000: a wrong reader might never end. Returns the last
 * status. */
static int read_all(int *messages)
{
    struct hvd_ring_message message;
    int status = 0;

    *messages = 0;
    hvd_ring_look(&pair.reader);
    while (status == 0 && *messages < 1000) {
        status = hvd_ring_next(&pair.reader, &message);
        *messages += status == 0 ? 1 : 0;
    }
    return status;
}

static void good_messages_pass(void)
{
    int messages;

    open_pair();
    send(5);
    send(0);
    tap_ok(read_all(&messages) == HVD_INPROGRESS && messages == 2,
           "messages that were sent can be read");
    close_pair();
}

/* Reads a message, then adds `more` to the number of bytes that were written, and expects
 * that reading fails. */
static void refuse_head(uint64_t more, const char *what)
{
    int messages, first, again;

    open_pair();
    send(5);
    read_all(&messages);
    atomic_fetch_add(&pair.head.written, more);
    first = read_all(&messages);
    again = read_all(&messages);
    tap_ok(first == HVD_ERR_ARG && again == HVD_ERR_ARG && messages == 0,
           "nothing is read after a writer claims %s", what);
    close_pair();
}

static void refuse_frame(uint32_t bytes)
{
    const uint32_t frame[2] = {5, bytes};
    int messages;

    open_pair();
    memcpy(pair.data, frame, sizeof(frame));
    atomic_store(&pair.head.written, FRAME);
    tap_ok(read_all(&messages) == HVD_ERR_ARG, "a message of %u bytes is refused", bytes);
    close_pair();
}

/* Adds `more` to the number of bytes that one of the readers has read, and expects that
 * sending fails. */
static void refuse_tail(uint64_t more, const char *what)
{
    bool wrote = false;
    int status;

    open_pair();
    send(5);
    atomic_store(&pair.tails[0].read, 16);
    atomic_store(&pair.tails[1].read, 16 + more);
    status = send(2 * BYTES);
    tap_ok(status == HVD_ERR_ARG && is_guard_whole(),
           "nothing is written after a reader claims %s", what);
    tap_ok(hvd_ring_flush(&pair.writer, &wrote) == HVD_ERR_ARG && !wrote,
           "the next write gets the same error");
    close_pair();
}

int main(void)
{
    good_messages_pass();
    refuse_head(BYTES + 8, "that more was written than the ring holds");
    refuse_head((uint64_t)1 << 63, "that far more was written than the ring holds");
    refuse_head((uint64_t)-8, "that less was written than before");
    refuse_head(12, "that half a frame was written");
    refuse_frame(HVD_RING_MAX_MESSAGE + 1);
    refuse_frame(UINT32_MAX);
    refuse_tail(8, "that it has read more than was written");
    refuse_tail((uint64_t)1 << 40, "that it has read a terabyte more than was written");
    refuse_tail((uint64_t)-1024, "that it lags behind by more than the ring holds");
    refuse_tail((uint64_t)-4, "that it has read half a frame");
    return tap_done();
}
