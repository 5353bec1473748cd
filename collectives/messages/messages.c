/* SPDX-License-Identifier: Apache-2.0 */
/* Sends and receives under way on this rank. */
#include "collectives/messages/messages.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/hvd.h"
#include "collectives/messages/links.h"
#include "collectives/messages/matching.h"
#include "collectives/messages/transfers.h"
#include "collectives/transport/shm/shm_reach.h"
#include "pmix_boot/boot.h"

_Static_assert((int)HVD_ANY_SOURCE == (int)HVD_MATCHING_ANY, "the interface's number");

/* Of one message, before others have their turn. */
static const uint64_t read_at_once = 4 << 20;

/* What has been taken of a rank's small messages is told once it is this part of the window. */
static const uint64_t told_every = HVD_EAGER_WINDOW / 4;

/* A message that no receive waits for. */
struct arrival {
    struct hvd_matching_item item; /* first */
    struct hvd_envelope envelope;
    char payload[];
};

/* One that this rank has exchanged messages with. */
struct peer {
    uint64_t sent; /* small messages to it, by cost; */
    uint64_t acknowledged; /* of that, what it has taken */
    uint64_t taken; /* small messages of it, by cost */
    uint64_t told; /* of that, what it knows */
    bool has_written; /* this rank, to it */
    bool must_flush; /* its answer to FLUSH has not come */
    bool asks_to_flush; /* it waits for mine */
    struct hvd_transfer_row offered;
    struct hvd_transfer_row receiving;
};

struct hvd_messages {
    struct hvd_messages_config config;
    struct hvd_links links;
    struct peer **peers; /* [size], NULL until first use */
    struct hvd_matching receives; /* struct hvd_transfer */
    struct hvd_matching arrivals; /* struct arrival */
    struct hvd_transfers transfers;
    struct hvd_transfer_row moving; /* SENDING, READING */
    int receiving; /* in pieces */
    int flushing; /* peers that have to answer; and that wait for an answer: */
    int asking;
    bool is_over; /* dropped */
};

static int fail(struct hvd_messages *messages, int status, const char *text)
{
    if (messages->links.failure.status == 0) {
        hvd_fail(&messages->links.failure, status, "%s", text);
    }
    return status;
}

static int no_memory(struct hvd_messages *messages)
{
    return fail(messages, HVD_ERR_NOMEM, "no memory for a message");
}

static void end(struct hvd_messages *messages, struct hvd_transfer *transfer, int status,
                const char *text)
{
    struct hvd_entry *entry = transfer->entry;

    entry->request->value = transfer->item.rank;
    hvd_transfers_remove(&messages->transfers, transfer);
    messages->config.ended(messages->config.context, entry, status, text);
}

/* NULL: it has not been aborted. */
static const char *reason_of(const struct hvd_messages *messages, int set)
{
    return messages->config.aborted != NULL
               ? messages->config.aborted(messages->config.context, set)
               : NULL;
}

/* --- peers --- */

static struct peer *get_peer(struct hvd_messages *messages, int rank)
{
    if (messages->peers[rank] == NULL) {
        messages->peers[rank] = calloc(1, sizeof(struct peer));
    }
    if (messages->peers[rank] == NULL) {
        no_memory(messages);
    }
    return messages->peers[rank];
}

static int write_to(struct hvd_messages *messages, int rank, struct hvd_envelope envelope,
                    const void *payload)
{
    struct peer *peer = get_peer(messages, rank);

    if (peer == NULL) {
        return HVD_ERR_NOMEM;
    }
    envelope.taken = peer->taken;
    peer->told = peer->taken;
    peer->has_written = true;
    return hvd_links_write(&messages->links, rank, &envelope, payload);
}

/* A small message of the rank needs no memory here any more. */
static int release(struct hvd_messages *messages, int rank, uint64_t bytes)
{
    struct peer *peer = messages->peers[rank];

    peer->taken += hvd_envelope_cost(bytes);
    return peer->taken - peer->told < told_every
               ? 0
               : write_to(messages, rank,
                          (struct hvd_envelope){.type = HVD_ENVELOPE_TAKEN}, NULL);
}

/* --- sending --- */

static struct hvd_envelope describe(const struct hvd_entry *entry,
                                    enum hvd_envelope_type type)
{
    return (struct hvd_envelope){
        .type = type,
        .dtype = (uint32_t)entry->proposal.dtype,
        .set = entry->proposal.set,
        .tag = entry->request->tag,
        .bytes = entry->output_bytes,
    };
}

static bool is_eager(const struct peer *peer, uint64_t bytes)
{
    return bytes <= HVD_EAGER_BYTES &&
           peer->sent - peer->acknowledged + hvd_envelope_cost(bytes) <= HVD_EAGER_WINDOW;
}

static int send_eagerly(struct hvd_messages *messages, struct hvd_entry *entry)
{
    const int rank = entry->proposal.root;
    struct hvd_envelope envelope = describe(entry, HVD_ENVELOPE_EAGER);
    int status;

    envelope.payload = (uint32_t)entry->output_bytes;
    messages->peers[rank]->sent += hvd_envelope_cost(envelope.bytes);
    status = write_to(messages, rank, envelope, entry->input);
    entry->request->value = rank;
    messages->config.ended(messages->config.context, entry, status,
                           status == 0 ? "" : messages->links.failure.text);
    return status;
}

static int offer(struct hvd_messages *messages, struct hvd_transfer *transfer)
{
    struct hvd_envelope envelope = describe(transfer->entry, HVD_ENVELOPE_OFFER);

    transfer->state = HVD_TRANSFER_OFFERED;
    hvd_transfer_row_append(&messages->peers[transfer->item.rank]->offered, transfer);
    envelope.send = transfer->number;
    envelope.at = (uint64_t)(uintptr_t)transfer->data;
    return write_to(messages, transfer->item.rank, envelope, NULL);
}

/* Sends pieces while there is room. True when all are on their way. */
static bool send_pieces(struct hvd_messages *messages, struct hvd_transfer *transfer,
                        bool *moved)
{
    const int rank = transfer->item.rank;

    while (transfer->done < transfer->bytes &&
           hvd_links_have_room(&messages->links, rank)) {
        const uint64_t left = transfer->bytes - transfer->done;
        const uint64_t piece = left < HVD_PIECE_BYTES ? left : HVD_PIECE_BYTES;
        const struct hvd_envelope envelope = {
            .type = HVD_ENVELOPE_DATA,
            .payload = (uint32_t)piece,
            .receive = transfer->other,
            .at = transfer->done,
        };

        if (write_to(messages, rank, envelope, transfer->data + transfer->done) != 0) {
            return false;
        }
        transfer->done += piece;
        *moved = true;
    }
    return transfer->done == transfer->bytes;
}

/* --- receiving --- */

/* Reads from the sender's memory. True when all is there. */
static bool read_some(struct hvd_messages *messages, struct hvd_transfer *transfer,
                      bool *moved)
{
    const uint64_t left = transfer->bytes - transfer->done;
    const uint64_t piece = left < read_at_once ? left : read_at_once;
    const int local_rank = hvd_links_local_rank(&messages->links, transfer->item.rank);
    int status =
        hvd_shm_read(messages->config.shm, local_rank, transfer->address + transfer->done,
                     transfer->data + transfer->done, piece);

    if (status != 0 && status != HVD_INPROGRESS) {
        fail(messages, status, "the memory of a rank of this node cannot be read");
    }
    if (status != 0) {
        transfer->is_lost = true; /* others tell so */
        return false;
    }
    transfer->done += piece;
    *moved = true;
    return transfer->done == transfer->bytes;
}

static int tell_done(struct hvd_messages *messages, const struct hvd_transfer *transfer)
{
    const struct hvd_envelope envelope = {.type = HVD_ENVELOPE_DONE,
                                          .send = transfer->other};

    return write_to(messages, transfer->item.rank, envelope, NULL);
}

static int ask_for_pieces(struct hvd_messages *messages, struct hvd_transfer *transfer)
{
    const struct hvd_envelope envelope = {
        .type = HVD_ENVELOPE_READY,
        .send = transfer->other,
        .receive = transfer->number,
    };

    transfer->state = HVD_TRANSFER_RECEIVING;
    hvd_transfer_row_append(&messages->peers[transfer->item.rank]->receiving, transfer);
    messages->receiving++;
    return write_to(messages, transfer->item.rank, envelope, NULL);
}

/* A message that is read where it is, or (false) comes in pieces; *done: it is there. */
static bool read_in_place(struct hvd_messages *messages, struct hvd_transfer *transfer,
                          bool *done)
{
    const int rank = transfer->item.rank;
    bool moved = false;

    if (transfer->bytes == 0) {
        *done = true;
        return true;
    }
    if (rank == messages->config.boot->rank) {
        memmove(transfer->data, (const void *)(uintptr_t)transfer->address,
                transfer->bytes);
        *done = true;
        return true;
    }
    if (hvd_links_local_rank(&messages->links, rank) < 0 ||
        !hvd_shm_settle(messages->config.shm) ||
        !hvd_shm_can_reach(messages->config.shm)) {
        return false;
    }
    *done = read_some(messages, transfer, &moved);
    return true;
}

static int fetch(struct hvd_messages *messages, struct hvd_transfer *transfer,
                 const struct hvd_envelope *envelope)
{
    bool is_done = false;
    int status;

    transfer->other = envelope->send;
    transfer->address = envelope->at;
    if (!read_in_place(messages, transfer, &is_done)) {
        return ask_for_pieces(messages, transfer);
    }
    if (!is_done) {
        transfer->state = HVD_TRANSFER_READING;
        hvd_transfer_row_append(&messages->moving, transfer);
        return messages->links.failure.status;
    }
    status = tell_done(messages, transfer);
    end(messages, transfer, 0, "");
    return status;
}

struct size {
    int rank;
    uint64_t bytes;
    uint32_t dtype;
};

static void write_mismatch(struct hvd_error *err, const struct size *sent,
                           const struct size *received, int64_t tag)
{
    hvd_fail(err, HVD_ERR_MISMATCH,
             "rank %d sends %" PRIu64 " bytes (%s) to rank %d with tag %" PRId64
             ", where the receive has %" PRIu64 " bytes (%s): give both the same size",
             sent->rank, sent->bytes, hvd_dtype_name((enum hvd_dtype)sent->dtype),
             received->rank, tag, received->bytes,
             hvd_dtype_name((enum hvd_dtype)received->dtype));
}

/* The receive, and the send if it has not ended. */
static int refuse(struct hvd_messages *messages, struct hvd_transfer *transfer,
                  const struct hvd_envelope *envelope)
{
    const struct size sent = {transfer->item.rank, envelope->bytes, envelope->dtype};
    const struct size received = {messages->config.boot->rank, transfer->bytes,
                                  (uint32_t)transfer->entry->proposal.dtype};
    const struct hvd_envelope answer = {
        .type = HVD_ENVELOPE_REFUSED,
        .dtype = received.dtype,
        .bytes = received.bytes,
        .send = envelope->send,
    };
    struct hvd_error why;
    int status = 0;

    write_mismatch(&why, &sent, &received, transfer->item.tag);
    if (envelope->type == HVD_ENVELOPE_OFFER) {
        status = write_to(messages, transfer->item.rank, answer, NULL);
    }
    end(messages, transfer, why.status, why.text);
    return status;
}

/* A message and a receive that fit. */
static int meet(struct hvd_messages *messages, struct hvd_transfer *transfer,
                const struct hvd_envelope *envelope, const void *payload)
{
    if (envelope->bytes != transfer->bytes) {
        return refuse(messages, transfer, envelope);
    }
    if (envelope->type == HVD_ENVELOPE_OFFER) {
        return fetch(messages, transfer, envelope);
    }
    if (envelope->bytes > 0) {
        memcpy(transfer->data, payload, envelope->bytes);
    }
    end(messages, transfer, 0, "");
    return 0;
}

/* --- envelopes --- */

static int keep(struct hvd_messages *messages, int rank,
                const struct hvd_envelope *envelope, const void *payload)
{
    struct arrival *arrival = malloc(sizeof(*arrival) + envelope->payload);

    if (arrival == NULL) {
        return no_memory(messages);
    }
    arrival->item = (struct hvd_matching_item){
        .rank = rank, .set = envelope->set, .tag = envelope->tag};
    arrival->envelope = *envelope;
    if (envelope->payload > 0) {
        memcpy(arrival->payload, payload, envelope->payload);
    }
    hvd_matching_enter(&messages->arrivals, &arrival->item);
    return 0;
}

/* A message in a set that has been aborted: its sender goes on. */
static int turn_down(struct hvd_messages *messages, int rank,
                     const struct hvd_envelope *envelope)
{
    const struct hvd_envelope answer = {
        .type = HVD_ENVELOPE_ABORTED, .set = envelope->set, .send = envelope->send};

    return envelope->type == HVD_ENVELOPE_OFFER
               ? write_to(messages, rank, answer, NULL)
               : release(messages, rank, envelope->bytes);
}

static int on_message(struct hvd_messages *messages, int rank,
                      const struct hvd_envelope *envelope, const void *payload)
{
    const struct hvd_matching_item key = {
        .rank = rank, .set = envelope->set, .tag = envelope->tag};
    struct hvd_transfer *transfer =
        (struct hvd_transfer *)hvd_matching_take(&messages->receives, &key);
    int status;

    if (transfer == NULL && reason_of(messages, envelope->set) != NULL) {
        return turn_down(messages, rank, envelope);
    }
    if (transfer == NULL) {
        return keep(messages, rank, envelope, payload);
    }
    transfer->item.rank = rank;
    status = meet(messages, transfer, envelope, payload);
    return status != 0 || envelope->type != HVD_ENVELOPE_EAGER
               ? status
               : release(messages, rank, envelope->bytes);
}

static int on_piece(struct hvd_messages *messages, struct peer *peer,
                    const struct hvd_envelope *envelope, const void *payload)
{
    struct hvd_transfer *transfer =
        hvd_transfer_row_find(&peer->receiving, envelope->receive, envelope->payload);

    if (transfer == NULL || envelope->at != transfer->done ||
        envelope->payload > transfer->bytes - transfer->done) {
        return fail(messages, HVD_ERR_NET, "a piece of a message is not the next one");
    }
    memcpy(transfer->data + transfer->done, payload, envelope->payload);
    transfer->done += envelope->payload;
    if (transfer->done == transfer->bytes) {
        messages->receiving--;
        end(messages, transfer, 0, "");
    }
    return 0;
}

static void on_refusal(struct hvd_messages *messages, struct hvd_transfer *transfer,
                       const struct hvd_envelope *envelope)
{
    const struct size sent = {messages->config.boot->rank, transfer->bytes,
                              (uint32_t)transfer->entry->proposal.dtype};
    const struct size received = {transfer->item.rank, envelope->bytes, envelope->dtype};
    struct hvd_error why;

    write_mismatch(&why, &sent, &received, transfer->item.tag);
    end(messages, transfer, why.status, why.text);
}

/* This rank may hear of it later than the other one. */
static void on_abort(struct hvd_messages *messages, struct hvd_transfer *transfer)
{
    const char *reason = reason_of(messages, transfer->item.set);
    struct hvd_error why;

    hvd_fail(&why, HVD_ERR_ABORTED, "process set %d has been aborted",
             transfer->item.set);
    end(messages, transfer, HVD_ERR_ABORTED, reason != NULL ? reason : why.text);
}

/* To an offer. */
static int on_answer(struct hvd_messages *messages, struct peer *peer,
                     const struct hvd_envelope *envelope)
{
    struct hvd_transfer *transfer =
        hvd_transfer_row_find(&peer->offered, envelope->send, UINT64_MAX);

    if (transfer == NULL) {
        return fail(messages, HVD_ERR_NET,
                    "another rank answers a message that this one has not sent");
    }
    switch (envelope->type) {
    case HVD_ENVELOPE_READY:
        transfer->other = envelope->receive;
        transfer->state = HVD_TRANSFER_SENDING;
        hvd_transfer_row_append(&messages->moving, transfer);
        return 0;
    case HVD_ENVELOPE_REFUSED:
        on_refusal(messages, transfer, envelope);
        return 0;
    case HVD_ENVELOPE_ABORTED:
        on_abort(messages, transfer);
        return 0;
    default:
        end(messages, transfer, 0, "");
        return 0;
    }
}

static int on_flush(struct hvd_messages *messages, struct peer *peer)
{
    if (peer->asks_to_flush) {
        return fail(messages, HVD_ERR_NET, "another rank ends twice");
    }
    peer->asks_to_flush = true;
    messages->asking++;
    return 0;
}

static int on_flushed(struct hvd_messages *messages, struct peer *peer)
{
    if (!peer->must_flush) {
        return fail(messages, HVD_ERR_NET, "another rank ends what has not been begun");
    }
    peer->must_flush = false;
    messages->flushing--;
    return 0;
}

static int on_envelope(void *context, int rank, const struct hvd_envelope *envelope,
                       const void *payload)
{
    struct hvd_messages *messages = context;
    struct peer *peer = get_peer(messages, rank);

    if (messages->is_over || peer == NULL) {
        return 0;
    }
    if (envelope->taken < peer->acknowledged || envelope->taken > peer->sent) {
        return fail(messages, HVD_ERR_NET,
                    "another rank has taken more than was sent to it");
    }
    peer->acknowledged = envelope->taken;
    switch (envelope->type) {
    case HVD_ENVELOPE_EAGER:
    case HVD_ENVELOPE_OFFER:
        return on_message(messages, rank, envelope, payload);
    case HVD_ENVELOPE_TAKEN:
        return 0;
    case HVD_ENVELOPE_FLUSH:
        return on_flush(messages, peer);
    case HVD_ENVELOPE_FLUSHED:
        return on_flushed(messages, peer);
    case HVD_ENVELOPE_DATA:
        return on_piece(messages, peer, envelope, payload);
    default:
        return on_answer(messages, peer, envelope);
    }
}

/* --- starting --- */

/* There was no memory for it. */
static int lose(struct hvd_messages *messages, struct hvd_entry *entry)
{
    int status = no_memory(messages);

    messages->config.ended(messages->config.context, entry, status,
                           messages->links.failure.text);
    return status;
}

static int start_send(struct hvd_messages *messages, struct hvd_entry *entry,
                      int64_t now_ns)
{
    const struct peer *peer = get_peer(messages, entry->proposal.root);
    struct hvd_transfer *transfer;

    if (peer != NULL && is_eager(peer, entry->output_bytes)) {
        return send_eagerly(messages, entry);
    }
    transfer =
        peer != NULL ? hvd_transfers_add(&messages->transfers, entry, now_ns) : NULL;
    return transfer != NULL ? offer(messages, transfer) : lose(messages, entry);
}

static int start_receive(struct hvd_messages *messages, struct hvd_entry *entry,
                         int64_t now_ns)
{
    struct hvd_transfer *transfer =
        hvd_transfers_add(&messages->transfers, entry, now_ns);
    struct arrival *arrival;
    int status;

    if (transfer == NULL) {
        return lose(messages, entry);
    }
    arrival = (struct arrival *)hvd_matching_take(&messages->arrivals, &transfer->item);
    if (arrival == NULL) {
        transfer->state = HVD_TRANSFER_WAITING;
        hvd_matching_enter(&messages->receives, &transfer->item);
        return 0;
    }
    transfer->item.rank = arrival->item.rank;
    status = meet(messages, transfer, &arrival->envelope, arrival->payload);
    if (status == 0 && arrival->envelope.type == HVD_ENVELOPE_EAGER) {
        status = release(messages, arrival->item.rank, arrival->envelope.bytes);
    }
    free(arrival);
    return status;
}

void hvd_messages_start(struct hvd_messages *messages, struct hvd_entry *entry,
                        int64_t now_ns)
{
    const char *reason = reason_of(messages, entry->proposal.set);

    if (reason != NULL) {
        messages->config.ended(messages->config.context, entry, HVD_ERR_ABORTED, reason);
    } else if (entry->proposal.kind == HVD_KIND_SEND) {
        start_send(messages, entry, now_ns);
    } else {
        start_receive(messages, entry, now_ns);
    }
}

/* --- moving --- */

/* True: all of it is moved. */
static bool move_one(struct hvd_messages *messages, struct hvd_transfer *transfer,
                     bool *moved)
{
    if (transfer->state == HVD_TRANSFER_SENDING) {
        return send_pieces(messages, transfer, moved);
    }
    if (transfer->is_lost || !read_some(messages, transfer, moved)) {
        return false;
    }
    tell_done(messages, transfer);
    return true;
}

static bool move_all(struct hvd_messages *messages)
{
    struct hvd_transfer *before = NULL, *transfer = messages->moving.first;
    bool moved = false;

    while (transfer != NULL && messages->links.failure.status == 0) {
        struct hvd_transfer *next = transfer->next_in_row;

        if (move_one(messages, transfer, &moved)) {
            hvd_transfer_row_take_out(&messages->moving, before);
            end(messages, transfer, 0, "");
        } else {
            before = transfer;
        }
        transfer = next;
    }
    return moved;
}

static bool is_reading_from(const struct hvd_messages *messages, int rank)
{
    const struct hvd_transfer *transfer = messages->moving.first;

    while (transfer != NULL &&
           (transfer->state != HVD_TRANSFER_READING || transfer->item.rank != rank)) {
        transfer = transfer->next_in_row;
    }
    return transfer != NULL;
}

/* Once nothing of it is being moved: its memory may be gone then. */
static void answer_flushes(struct hvd_messages *messages)
{
    for (int i = 0; i < messages->config.boot->size; i++) {
        struct peer *peer = messages->peers[i];

        if (peer != NULL && peer->asks_to_flush && peer->receiving.first == NULL &&
            !is_reading_from(messages, i)) {
            peer->asks_to_flush = false;
            messages->asking--;
            write_to(messages, i, (struct hvd_envelope){.type = HVD_ENVELOPE_FLUSHED},
                     NULL);
        }
    }
}

bool hvd_messages_progress(struct hvd_messages *messages)
{
    bool moved = hvd_links_progress(&messages->links);

    if (messages->moving.first != NULL) {
        moved |= move_all(messages);
    }
    if (messages->asking > 0 && !messages->is_over) {
        answer_flushes(messages);
    }
    return moved;
}

/* Reading goes on by itself; sending waits for room, of which the links hear. */
bool hvd_messages_have_news(const struct hvd_messages *messages)
{
    const struct hvd_transfer *transfer = messages->moving.first;
    bool have = messages->links.failure.status != 0 && !messages->is_over;

    for (; transfer != NULL && !have; transfer = transfer->next_in_row) {
        have = transfer->state == HVD_TRANSFER_SENDING
                   ? hvd_links_have_room(&messages->links, transfer->item.rank)
                   : !transfer->is_lost;
    }
    return have || hvd_links_have_news(&messages->links);
}

void hvd_messages_hush(struct hvd_messages *messages, bool is_hushed)
{
    hvd_node_board_hush(&messages->links.board, is_hushed);
}

const struct hvd_error *hvd_messages_failure(const struct hvd_messages *messages)
{
    return &messages->links.failure;
}

bool hvd_messages_are_pending(const struct hvd_messages *messages)
{
    return messages->transfers.oldest != NULL;
}

bool hvd_messages_are_moving(const struct hvd_messages *messages)
{
    return messages->moving.first != NULL || messages->receiving > 0;
}

int64_t hvd_messages_deadline(const struct hvd_messages *messages)
{
    const int64_t warning_ns = messages->config.warning_ns;

    return warning_ns > 0 ? hvd_transfers_deadline(&messages->transfers, warning_ns) : -1;
}

void hvd_messages_warn(struct hvd_messages *messages, int64_t now_ns)
{
    if (messages->config.warning_ns > 0) {
        hvd_transfers_warn(&messages->transfers, messages->config.boot->rank,
                           messages->config.warning_ns, now_ns);
    }
}

/* --- the end --- */

void hvd_messages_abort_set(struct hvd_messages *messages, int set, const char *reason)
{
    struct hvd_matching_item *item;

    while ((item = hvd_matching_take_of_set(&messages->receives, set)) != NULL) {
        end(messages, (struct hvd_transfer *)item, HVD_ERR_ABORTED, reason);
    }
    while ((item = hvd_matching_take_of_set(&messages->arrivals, set)) != NULL) {
        turn_down(messages, item->rank, &((const struct arrival *)item)->envelope);
        free(item);
    }
}

void hvd_messages_flush(struct hvd_messages *messages)
{
    const int size = messages->config.boot->size;

    for (int i = 0; i < size && messages->links.failure.status == 0; i++) {
        struct peer *peer = messages->peers[i];

        if (peer != NULL && peer->has_written && i != messages->config.boot->rank) {
            peer->must_flush = true;
            messages->flushing++;
            write_to(messages, i, (struct hvd_envelope){.type = HVD_ENVELOPE_FLUSH},
                     NULL);
        }
    }
}

bool hvd_messages_have_drained(const struct hvd_messages *messages)
{
    return messages->flushing == 0 && !hvd_messages_are_moving(messages);
}

void hvd_messages_drop(struct hvd_messages *messages, int status, const char *text)
{
    struct hvd_matching_item *item;

    messages->is_over = true;
    messages->moving = (struct hvd_transfer_row){0};
    while (hvd_matching_take_any(&messages->receives) != NULL) {
    }
    while ((item = hvd_matching_take_any(&messages->arrivals)) != NULL) {
        free(item);
    }
    for (int i = 0; messages->peers != NULL && i < messages->config.boot->size; i++) {
        if (messages->peers[i] != NULL) {
            messages->peers[i]->offered = (struct hvd_transfer_row){0};
            messages->peers[i]->receiving = (struct hvd_transfer_row){0};
        }
    }
    messages->receiving = 0;
    while (messages->transfers.oldest != NULL) {
        end(messages, messages->transfers.oldest, status, text);
    }
}

int hvd_messages_create(const struct hvd_messages_config *config,
                        struct hvd_messages **out, struct hvd_error *err)
{
    struct hvd_messages *messages = calloc(1, sizeof(*messages));
    const struct hvd_links_config links = {
        .boot = config->boot,
        .net = config->net,
        .shm = config->shm,
        .board = config->board,
        .arrived = on_envelope,
        .context = messages,
    };
    int status;

    if (messages == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for messages");
    }
    messages->config = *config;
    messages->peers = calloc((size_t)config->boot->size, sizeof(messages->peers[0]));
    status = messages->peers == NULL
                 ? hvd_fail(err, HVD_ERR_NOMEM, "no memory for messages")
                 : hvd_links_init(&messages->links, &links, err);
    if (status != 0) {
        hvd_messages_destroy(messages);
        return status;
    }
    *out = messages;
    return 0;
}

void hvd_messages_destroy(struct hvd_messages *messages)
{
    if (messages == NULL) {
        return;
    }
    hvd_messages_drop(messages, HVD_ERR_SHUTDOWN, "the job is over");
    for (int i = 0; messages->peers != NULL && i < messages->config.boot->size; i++) {
        free(messages->peers[i]);
    }
    free(messages->peers);
    hvd_links_finish(&messages->links);
    free(messages);
}
