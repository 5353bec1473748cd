/* SPDX-License-Identifier: Apache-2.0 */
/* Envelopes to and from a rank of this node.
 *
 * Of the reserved memory (shm.h) each pair of local ranks has a part:
 *
 *   [ head | tail | head | tail | ring of the lower one | ring of the higher one ] */
#include "collectives/messages/node_link.h"

#include <sys/mman.h>

#include "collectives/transport/shm/shm.h"
#include "collectives/transport/shm/shm_pages.h"

enum {
    BITS = 64,
    LINE = 128, /* adjacent-line prefetch: shm_state.h */
    FRONT_BYTES = 4096, /* of a pair */
    RING_BYTES = 65536,
};

struct end {
    struct hvd_ring_head head;
    struct hvd_ring_tail tail;
};

_Static_assert(2 * sizeof(struct end) <= FRONT_BYTES, "heads and tails fit");

/* Of a ring: a position in it is impossible, or there is no memory. */
static int fail(int status, struct hvd_error *err)
{
    return status == HVD_ERR_NOMEM
               ? hvd_fail(err, status, "no memory for a message")
               : hvd_fail(err, HVD_ERR_NET, "the shared memory of this node is damaged");
}

/* --- the board --- */

static size_t line_bytes(int local_size)
{
    size_t words =
        ((size_t)local_size + BITS - 1) / BITS + 1; /* and whether it is hushed */
    size_t bytes = words * sizeof(uint64_t);

    return (bytes + LINE - 1) / LINE * LINE;
}

size_t hvd_node_board_bytes(int local_size)
{
    return (size_t)local_size * line_bytes(local_size);
}

void hvd_node_board_init(struct hvd_node_board *board, struct hvd_shm *shm, void *memory,
                         int local_rank, int local_size)
{
    *board = (struct hvd_node_board){
        .shm = shm,
        .memory = memory,
        .local_rank = local_rank,
        .local_size = local_size,
        .words = local_size > 1 ? (local_size + BITS - 1) / BITS : 0,
    };
}

static _Atomic uint64_t *line_of(const struct hvd_node_board *board, int local_rank)
{
    return (void *)(board->memory + (size_t)local_rank * line_bytes(board->local_size));
}

static _Atomic uint64_t *hush_of(const struct hvd_node_board *board, int local_rank)
{
    return line_of(board, local_rank) + board->words;
}

/* Who sets a bit and finds the rank hushed no more, rings; else the rank sees the bit. */
void hvd_node_board_hush(struct hvd_node_board *board, bool is_hushed)
{
    if (board->is_hushed != is_hushed && board->words > 0) {
        board->is_hushed = is_hushed;
        atomic_store(hush_of(board, board->local_rank), is_hushed ? 1 : 0);
    }
}

bool hvd_node_board_has_news(const struct hvd_node_board *board)
{
    const _Atomic uint64_t *line = line_of(board, board->local_rank);
    uint64_t bits = 0;

    for (int i = 0; i < board->words && !board->is_hushed; i++) {
        bits |= atomic_load(&line[i]);
    }
    return bits != 0;
}

uint64_t hvd_node_board_take(const struct hvd_node_board *board, int word)
{
    _Atomic uint64_t *at = line_of(board, board->local_rank) + word;

    return atomic_load_explicit(at, memory_order_relaxed) == 0 ? 0
                                                               : atomic_exchange(at, 0);
}

/* The peer has something to look at. */
static void notify(const struct hvd_node_link *link)
{
    const struct hvd_node_board *board = link->board;
    const uint64_t bit = (uint64_t)1 << (board->local_rank % BITS);
    _Atomic uint64_t *word = line_of(board, link->local_rank) + board->local_rank / BITS;

    if ((atomic_load(word) & bit) == 0) {
        atomic_fetch_or(word, bit);
    }
    if (atomic_load(hush_of(board, link->local_rank)) == 0) {
        hvd_shm_ring(board->shm, link->local_rank);
    }
}

/* --- a pair --- */

static size_t pair_bytes(void)
{
    return hvd_shm_round_to_page(FRONT_BYTES + 2 * RING_BYTES);
}

size_t hvd_node_pairs_bytes(int local_size)
{
    size_t n = (size_t)local_size;

    return n * (n - 1) / 2 * pair_bytes();
}

static struct hvd_ring ring_of(char *pair, int which)
{
    struct end *end = (struct end *)pair + which;

    return (struct hvd_ring){
        .head = &end->head,
        .tails = &end->tail,
        .readers = 1,
        .data = pair + FRONT_BYTES + (size_t)which * RING_BYTES,
        .bytes = RING_BYTES,
    };
}

int hvd_node_link_open(struct hvd_node_link *link, const struct hvd_node_board *board,
                       int local_rank, struct hvd_error *err)
{
    const bool is_low = board->local_rank < local_rank;
    const size_t low = (size_t)(is_low ? board->local_rank : local_rank);
    const size_t high = (size_t)(is_low ? local_rank : board->local_rank);
    const size_t at = (high * (high - 1) / 2 + low) * pair_bytes();
    struct hvd_ring ring;
    int status = hvd_shm_map_reserved(board->shm, at, pair_bytes(), &link->pair, err);

    if (status != 0) {
        return status;
    }
    link->board = board;
    link->local_rank = local_rank;
    ring = ring_of(link->pair, is_low ? 0 : 1);
    hvd_ring_writer_init(&link->writer, &ring);
    ring = ring_of(link->pair, is_low ? 1 : 0);
    hvd_ring_reader_init(&link->reader, &ring, 0);
    return 0;
}

void hvd_node_link_close(struct hvd_node_link *link)
{
    if (link->pair != NULL) {
        hvd_ring_writer_finish(&link->writer);
        hvd_ring_reader_finish(&link->reader);
        munmap(link->pair, pair_bytes());
    }
}

int hvd_node_link_write(struct hvd_node_link *link, const void *data, size_t bytes,
                        struct hvd_error *err)
{
    bool wrote = false;
    int status = hvd_ring_send(&link->writer, 0, data, bytes, &wrote);

    if (wrote) {
        notify(link);
    }
    return status == 0 ? 0 : fail(status, err);
}

bool hvd_node_link_flush(struct hvd_node_link *link, struct hvd_error *err)
{
    bool wrote = false;

    if (hvd_ring_flush(&link->writer, &wrote) != 0) {
        fail(HVD_ERR_NET, err);
    }
    if (wrote) {
        notify(link);
    }
    return wrote;
}

int hvd_node_link_read(struct hvd_node_link *link, hvd_node_link_arrived *arrived,
                       void *context, struct hvd_error *err)
{
    struct hvd_ring_message message;
    int status;

    hvd_ring_look(&link->reader);
    while ((status = hvd_ring_next(&link->reader, &message)) == 0) {
        status = arrived(context, message.payload, message.bytes);
        if (status != 0) {
            return status;
        }
    }
    if (hvd_ring_release(&link->reader)) {
        notify(link);
    }
    if (status == HVD_INPROGRESS) {
        return 0;
    }
    return fail(status, err);
}
