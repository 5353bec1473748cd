/* SPDX-License-Identifier: Apache-2.0 */
/* Mail between the ranks of a node.
 *
 * The extra bytes:
 *
 *   [ board of rank 0 | of rank 1 | ... ][ heads | tails upwards | tails downwards ]
 *   [ ring down ][ ring up of rank 1 | of rank 2 | ... ]
 *
 *   board: words for control, words for p2p, whether wake-ups for p2p are suppressed
 *   heads, tails: one of each per local rank; the head of local rank 0 belongs to the
 *                 ring down
 *
 * The reserved bytes have a part for each pair:
 *
 *   [ head, tail | head, tail | ring of the lower rank | ring of the higher rank ] */
#include "collectives/transport/shm/mail.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "collectives/transport/shm/byte_ring.h"
#include "collectives/transport/shm/shm_pages.h"
#include "collectives/transport/shm/shm_state.h"

enum {
    KINDS = 2,
    BITS = 64, /* bits of a word */
    LINE = 128, /* adjacent-line prefetch: shm_state.h */
    FRONT_BYTES = 4096, /* bytes in front of the rings of a pair */
    PAIR_RING_BYTES = 64 << 10,
    /* Sizes of the rings for control mail, enough for one step of most models. A rank's
     * reports go up, about 100 bytes for each tensor that is not cached; the decisions
     * about the tensors of all ranks go down. Longer messages pass in pieces. */
    UP_BYTES = 32 << 10,
    DOWN_BYTES = 128 << 10,
};

/* The mail between this rank and another. */
struct link {
    int local_rank; /* local rank of the other end */
    struct hvd_ring_reader reader;
    struct hvd_ring_writer *writer;
};

struct pair {
    struct link link;
    struct hvd_ring_writer writer;
    char *memory;
};

/* One kind of mail to this rank. */
struct box {
    _Atomic uint64_t *words;
    struct link *hot; /* the link that last delivered something, or NULL */
    bool has_skipped; /* the last call read only the hot link and not the words */
    bool is_suppressed;
    bool has_failed;
};

struct hvd_mail {
    struct hvd_shm *shm;
    char *memory;
    int local_rank;
    int local_size;
    int words; /* number of words for each kind */
    bool is_delivering;
    struct box boxes[KINDS];
    struct hvd_ring_writer writer; /* writes control mail */
    /* links for control mail: on the leader, one to each other rank; on other ranks, only
     * one to the leader */
    struct link *links;
    struct pair **pairs; /* [local_size], NULL until first use */
};

/* The caller's arguments of progress. */
struct delivery {
    enum hvd_mail_kind kind;
    hvd_mail_handler *handler;
    void *context;
    struct hvd_error *err;
};

static int fail_ring(const struct hvd_mail *mail, int status, struct hvd_error *err)
{
    if (status == HVD_ERR_NOMEM) {
        return hvd_fail(err, status, "no memory for mail to another rank of this node");
    }
    return hvd_fail(err, HVD_ERR_NET,
                    "another rank of this node claims to have read bytes that local rank "
                    "%d has not written: the shared memory of this node is damaged",
                    mail->local_rank);
}

/* --- the board --- */

static size_t board_bytes(int local_size)
{
    size_t words = ((size_t)local_size + BITS - 1) / BITS;
    size_t bytes = (KINDS * words + 1) * sizeof(uint64_t);

    return (bytes + LINE - 1) / LINE * LINE;
}

static _Atomic uint64_t *words_of(const struct hvd_mail *mail, int kind, int local_rank)
{
    char *board = mail->memory + (size_t)local_rank * board_bytes(mail->local_size);

    return (_Atomic uint64_t *)board + (ptrdiff_t)kind * mail->words;
}

static _Atomic uint64_t *suppressed_of(const struct hvd_mail *mail, int local_rank)
{
    return words_of(mail, KINDS, local_rank);
}

/* No mail is missed once wake-ups are allowed again: a sender either sees that and wakes
 * this rank, or has set its bit before, and this rank's next look finds the bit. */
void hvd_mail_suppress_p2p(struct hvd_mail *mail, bool is_suppressed)
{
    struct box *box = &mail->boxes[HVD_MAIL_P2P];

    if (box->is_suppressed != is_suppressed) {
        box->is_suppressed = is_suppressed;
        atomic_store(suppressed_of(mail, mail->local_rank), is_suppressed ? 1 : 0);
    }
}

/* Notifies another rank that it has mail to read or room to write. */
static void notify_rank(const struct hvd_mail *mail, enum hvd_mail_kind kind,
                        int local_rank)
{
    const uint64_t bit = (uint64_t)1 << (mail->local_rank % BITS);
    _Atomic uint64_t *word =
        words_of(mail, (int)kind, local_rank) + mail->local_rank / BITS;

    if ((atomic_load(word) & bit) == 0) {
        atomic_fetch_or(word, bit);
    }
    if (kind == HVD_MAIL_CONTROL || atomic_load(suppressed_of(mail, local_rank)) == 0) {
        hvd_shm_ring_sleeper(mail->shm, local_rank);
    }
}

/* Wakes all other ranks after the leader has written to its ring. Sets no bits, because
 * they look at the ring. */
static void wake_all(const struct hvd_mail *mail)
{
    for (int i = 1; i < mail->local_size; i++) {
        hvd_shm_ring_sleeper(mail->shm, i);
    }
}

bool hvd_mail_has_come(const struct hvd_mail *mail, enum hvd_mail_kind kind)
{
    const struct box *box = &mail->boxes[kind];
    uint64_t bits = 0;

    if (box->is_suppressed || box->has_failed) {
        return false;
    }
    if (box->hot != NULL && hvd_ring_has_mail(&box->hot->reader)) {
        return true; /* the words need not be read */
    }
    for (int i = 0; i < mail->words; i++) {
        bits |= atomic_load(&box->words[i]);
    }
    return bits != 0;
}

/* --- the rings of control mail --- */

size_t hvd_mail_extra_bytes(int local_size)
{
    size_t n = (size_t)local_size;

    return n * (board_bytes(local_size) + sizeof(struct hvd_ring_head) +
                2 * sizeof(struct hvd_ring_tail)) +
           DOWN_BYTES + (n - 1) * UP_BYTES;
}

/* Returns the ring that a local rank writes. */
static struct hvd_ring control_ring(const struct hvd_mail *mail, int local_rank)
{
    const size_t n = (size_t)mail->local_size;
    struct hvd_ring_head *heads =
        (void *)(mail->memory + n * board_bytes(mail->local_size));
    struct hvd_ring_tail *up = (struct hvd_ring_tail *)(heads + n);
    struct hvd_ring_tail *down = up + n;
    char *data = (char *)(down + n);

    if (local_rank == 0) {
        return (struct hvd_ring){
            .head = heads,
            .tails = down + 1,
            .readers = mail->local_size - 1,
            .data = data,
            .bytes = DOWN_BYTES,
        };
    }
    return (struct hvd_ring){
        .head = heads + local_rank,
        .tails = up + local_rank,
        .readers = 1,
        .data = data + DOWN_BYTES + (size_t)(local_rank - 1) * UP_BYTES,
        .bytes = UP_BYTES,
    };
}

static int count_links(const struct hvd_mail *mail)
{
    return mail->local_rank == 0 ? mail->local_size - 1 : 1;
}

static void open_control(struct hvd_mail *mail)
{
    struct hvd_ring ring = control_ring(mail, mail->local_rank);

    hvd_ring_writer_init(&mail->writer, &ring);
    for (int i = 0; i < count_links(mail); i++) {
        struct link *link = &mail->links[i];

        link->local_rank = mail->local_rank == 0 ? i + 1 : 0;
        link->writer = &mail->writer;
        ring = control_ring(mail, link->local_rank);
        hvd_ring_reader_init(&link->reader, &ring,
                             mail->local_rank == 0 ? 0 : mail->local_rank - 1);
    }
    if (mail->local_rank > 0) {
        mail->boxes[HVD_MAIL_CONTROL].hot = &mail->links[0]; /* the leader sets no bits */
    }
}

/* --- pairs --- */

struct pair_end {
    struct hvd_ring_head head;
    struct hvd_ring_tail tail;
};

_Static_assert(2 * sizeof(struct pair_end) <= FRONT_BYTES, "heads and tails fit");

static size_t pair_bytes(void)
{
    return hvd_shm_round_to_page(FRONT_BYTES + 2 * PAIR_RING_BYTES);
}

size_t hvd_mail_reserved_bytes(int local_size)
{
    size_t n = (size_t)local_size;

    return n * (n - 1) / 2 * pair_bytes();
}

static struct hvd_ring pair_ring(char *memory, int which)
{
    struct pair_end *end = (struct pair_end *)memory + which;

    return (struct hvd_ring){
        .head = &end->head,
        .tails = &end->tail,
        .readers = 1,
        .data = memory + FRONT_BYTES + (size_t)which * PAIR_RING_BYTES,
        .bytes = PAIR_RING_BYTES,
    };
}

static int map_pair(struct hvd_mail *mail, int local_rank, char **memory,
                    struct hvd_error *err)
{
    const bool is_low = mail->local_rank < local_rank;
    const size_t low = (size_t)(is_low ? mail->local_rank : local_rank);
    const size_t high = (size_t)(is_low ? local_rank : mail->local_rank);

    return hvd_shm_map_reserved(mail->shm, (high * (high - 1) / 2 + low) * pair_bytes(),
                                pair_bytes(), memory, err);
}

static int open_pair(struct hvd_mail *mail, int local_rank, struct hvd_error *err)
{
    const bool is_low = mail->local_rank < local_rank;
    struct pair *pair = calloc(1, sizeof(*pair));
    struct hvd_ring ring;
    int status;

    if (pair == NULL) {
        return fail_ring(mail, HVD_ERR_NOMEM, err);
    }
    status = map_pair(mail, local_rank, &pair->memory, err);
    if (status != 0) {
        free(pair);
        return status;
    }
    ring = pair_ring(pair->memory, is_low ? 0 : 1);
    hvd_ring_writer_init(&pair->writer, &ring);
    ring = pair_ring(pair->memory, is_low ? 1 : 0);
    hvd_ring_reader_init(&pair->link.reader, &ring, 0);
    pair->link.local_rank = local_rank;
    pair->link.writer = &pair->writer;
    mail->pairs[local_rank] = pair;
    return 0;
}

static void close_pair(struct pair *pair)
{
    if (pair != NULL) {
        hvd_ring_writer_finish(&pair->writer);
        hvd_ring_reader_finish(&pair->link.reader);
        munmap(pair->memory, pair_bytes());
        free(pair);
    }
}

/* --- life --- */

int hvd_mail_create(struct hvd_shm *shm, void *memory, struct hvd_mail **out,
                    struct hvd_error *err)
{
    struct hvd_mail *mail = calloc(1, sizeof(*mail));

    assert((uintptr_t)memory % LINE == 0);
    if (mail == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for mail");
    }
    mail->shm = shm;
    mail->memory = memory;
    mail->local_rank = shm->local_rank;
    mail->local_size = shm->sizes.local_size;
    mail->words = (mail->local_size + BITS - 1) / BITS;
    mail->links = calloc((size_t)mail->local_size, sizeof(mail->links[0]));
    mail->pairs = calloc((size_t)mail->local_size, sizeof(mail->pairs[0]));
    if (mail->links == NULL || mail->pairs == NULL) {
        hvd_mail_destroy(mail);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for mail");
    }
    for (int kind = 0; kind < KINDS; kind++) {
        mail->boxes[kind].words = words_of(mail, kind, mail->local_rank);
    }
    open_control(mail);
    *out = mail;
    return 0;
}

void hvd_mail_destroy(struct hvd_mail *mail)
{
    if (mail == NULL) {
        return;
    }
    hvd_ring_writer_finish(&mail->writer);
    for (int i = 0; mail->links != NULL && i < count_links(mail); i++) {
        hvd_ring_reader_finish(&mail->links[i].reader);
    }
    for (int i = 0; mail->pairs != NULL && i < mail->local_size; i++) {
        close_pair(mail->pairs[i]);
    }
    free(mail->links);
    free(mail->pairs);
    free(mail);
}

/* --- sending --- */

/* Notifies the readers of the control ring of this rank. */
static void announce_control(const struct hvd_mail *mail)
{
    if (mail->local_rank == 0) {
        wake_all(mail);
    } else {
        notify_rank(mail, HVD_MAIL_CONTROL, 0);
    }
}

int hvd_mail_send_control(struct hvd_mail *mail, uint32_t type, const void *payload,
                          size_t bytes, struct hvd_error *err)
{
    bool wrote = false;
    int status;

    if (mail->local_size == 1) {
        return 0;
    }
    status = hvd_ring_send(&mail->writer, type, payload, bytes, &wrote);
    if (wrote) {
        announce_control(mail);
    }
    return status == 0 ? 0 : fail_ring(mail, status, err);
}

int hvd_mail_send_p2p(struct hvd_mail *mail, int local_rank, const void *payload,
                      size_t bytes, struct hvd_error *err)
{
    bool wrote = false;
    int status = mail->pairs[local_rank] == NULL ? open_pair(mail, local_rank, err) : 0;

    if (status != 0) {
        return status;
    }
    status = hvd_ring_send(&mail->pairs[local_rank]->writer, 0, payload, bytes, &wrote);
    if (wrote) {
        notify_rank(mail, HVD_MAIL_P2P, local_rank);
    }
    return status == 0 ? 0 : fail_ring(mail, status, err);
}

bool hvd_mail_control_waits(const struct hvd_mail *mail)
{
    return hvd_ring_is_waiting(&mail->writer);
}

bool hvd_mail_p2p_waits(const struct hvd_mail *mail, int local_rank)
{
    const struct pair *pair = mail->pairs[local_rank];

    return pair != NULL && hvd_ring_is_waiting(&pair->writer);
}

/* --- receiving --- */

/* Delivers all mail that a link holds when the call starts. Returns the number of
 * messages, or a failure. */
static int read_link(const struct hvd_mail *mail, struct link *link,
                     const struct delivery *delivery)
{
    struct hvd_ring_message message;
    int delivered = 0;
    int status;

    hvd_ring_look(&link->reader);
    while ((status = hvd_ring_next(&link->reader, &message)) == 0) {
        status = delivery->handler(delivery->context, link->local_rank, message.type,
                                   message.payload, message.bytes);
        if (status != 0) {
            return status;
        }
        delivered++;
    }
    if (hvd_ring_release(&link->reader)) {
        notify_rank(mail, delivery->kind, link->local_rank);
    }
    switch (status) {
    case HVD_INPROGRESS:
        return delivered;
    case HVD_ERR_ARG:
        return hvd_fail(delivery->err, HVD_ERR_NET,
                        "the mail of local rank %d to local rank %d is invalid: the "
                        "shared memory of this node is damaged",
                        link->local_rank, mail->local_rank);
    default:
        return fail_ring(mail, status, delivery->err);
    }
}

/* Writes waiting mail, perhaps into room that the other rank has made. Returns 1 if it
 * wrote anything, 0 if not, or a failure. */
static int flush_link(const struct hvd_mail *mail, struct link *link,
                      const struct delivery *delivery)
{
    bool wrote = false;
    int status = hvd_ring_flush(link->writer, &wrote);

    if (wrote && delivery->kind == HVD_MAIL_CONTROL) {
        announce_control(mail);
    } else if (wrote) {
        notify_rank(mail, delivery->kind, link->local_rank);
    }
    return status != 0 ? fail_ring(mail, status, delivery->err) : wrote;
}

/* Finds the link to a local rank. Sets *out to NULL for bits that no rank should set. */
static int find_link(struct hvd_mail *mail, int local_rank,
                     const struct delivery *delivery, struct link **out)
{
    int status = 0;

    *out = NULL;
    if (local_rank == mail->local_rank || local_rank >= mail->local_size) {
        return 0;
    }
    if (delivery->kind == HVD_MAIL_CONTROL) {
        if (mail->local_rank == 0) {
            *out = &mail->links[local_rank - 1];
        } else if (local_rank == 0) {
            *out = &mail->links[0];
        }
        return 0;
    }
    if (mail->pairs[local_rank] == NULL) {
        status = open_pair(mail, local_rank, delivery->err);
    }
    if (status == 0) {
        *out = &mail->pairs[local_rank]->link;
    }
    return status;
}

/* Exchanges mail with the local rank that has set its bit. */
static int serve_rank(struct hvd_mail *mail, int local_rank,
                      const struct delivery *delivery)
{
    struct link *link;
    int status = find_link(mail, local_rank, delivery, &link);
    int wrote;

    if (status != 0 || link == NULL) {
        return status;
    }
    mail->boxes[delivery->kind].hot = link;
    wrote = flush_link(mail, link, delivery);
    status = wrote < 0 ? wrote : read_link(mail, link, delivery);
    return status < 0 ? status : status + wrote;
}

static int serve_word(struct hvd_mail *mail, int word, const struct delivery *delivery)
{
    _Atomic uint64_t *at = &mail->boxes[delivery->kind].words[word];
    uint64_t bits =
        atomic_load_explicit(at, memory_order_relaxed) == 0 ? 0 : atomic_exchange(at, 0);
    int moved = 0;

    for (int i = word * BITS; bits != 0; i++, bits >>= 1) {
        if ((bits & 1) != 0) {
            int status = serve_rank(mail, i, delivery);

            if (status < 0) {
                return status;
            }
            moved += status;
        }
    }
    return moved;
}

static int serve_words(struct hvd_mail *mail, const struct delivery *delivery)
{
    int moved = 0;

    for (int i = 0; i < mail->words; i++) {
        int status = serve_word(mail, i, delivery);

        if (status < 0) {
            return status;
        }
        moved += status;
    }
    return moved;
}

/* Serves all links. The last sender usually sends next, so reading its ring without
 * looking at the words saves a cache-line transfer between two cores, 0.15 us. The next
 * call looks at the words in any case. */
static int serve_all(struct hvd_mail *mail, const struct delivery *delivery)
{
    struct box *box = &mail->boxes[delivery->kind];
    struct link *hot = box->hot;
    const bool is_hot = hot != NULL && hvd_ring_has_mail(&hot->reader);
    int moved = 0;
    int status;

    box->has_skipped = is_hot && !box->has_skipped;
    if (!box->has_skipped) {
        moved = serve_words(mail, delivery);
    }
    if (!is_hot || moved < 0) {
        return moved;
    }
    status = read_link(mail, hot, delivery);
    return status < 0 ? status : moved + status;
}

int hvd_mail_progress(struct hvd_mail *mail, enum hvd_mail_kind kind,
                      hvd_mail_handler *handler, void *context, struct hvd_error *err)
{
    const struct delivery delivery = {kind, handler, context, err};
    struct box *box = &mail->boxes[kind];
    int status;

    assert(!mail->is_delivering);
    if (box->has_failed) {
        return 0;
    }
    mail->is_delivering = true;
    status = serve_all(mail, &delivery);
    mail->is_delivering = false;
    box->has_failed = status < 0;
    return status;
}
