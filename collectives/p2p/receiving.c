/* SPDX-License-Identifier: Apache-2.0 */
/* What this rank receives, and keeps for its receives. */
#include "collectives/p2p/receiving.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/hvd.h"
#include "collectives/p2p/messages_state.h"
#include "collectives/set/set.h"
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

/* A small message of the rank needs no memory here any more. */
static int release(struct hvd_messages *messages, int rank, uint64_t bytes)
{
    struct hvd_message_peer *peer = messages->peers[rank];

    peer->taken += hvd_envelope_cost(bytes);
    return peer->taken - peer->told < told_every
               ? 0
               : hvd_messages_write(messages, rank,
                                    (struct hvd_envelope){.type = HVD_ENVELOPE_TAKEN},
                                    NULL);
}

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
        hvd_messages_fail(messages, status,
                          "the memory of a rank of this node cannot be read");
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

    return hvd_messages_write(messages, transfer->item.rank, envelope, NULL);
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
    return hvd_messages_write(messages, transfer->item.rank, envelope, NULL);
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
    hvd_messages_end(messages, transfer, 0, "");
    return status;
}

/* The receive, and the send if it has not ended. */
static int refuse(struct hvd_messages *messages, struct hvd_transfer *transfer,
                  const struct hvd_envelope *envelope)
{
    const struct hvd_message_size sent = {transfer->item.rank, envelope->bytes,
                                          envelope->dtype};
    const struct hvd_message_size received = {
        messages->config.boot->rank, transfer->bytes,
        (uint32_t)transfer->entry->descriptor.dtype};
    const struct hvd_envelope answer = {
        .type = HVD_ENVELOPE_REFUSED,
        .dtype = received.dtype,
        .bytes = received.bytes,
        .send = envelope->send,
    };
    struct hvd_error why;
    int status = 0;

    hvd_messages_mismatch(&why, &sent, &received, transfer->item.tag);
    if (envelope->type == HVD_ENVELOPE_OFFER) {
        status = hvd_messages_write(messages, transfer->item.rank, answer, NULL);
    }
    hvd_messages_end(messages, transfer, why.status, why.text);
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
    hvd_messages_end(messages, transfer, 0, "");
    return 0;
}

static int keep(struct hvd_messages *messages, int rank,
                const struct hvd_envelope *envelope, const void *payload)
{
    struct arrival *arrival = malloc(sizeof(*arrival) + envelope->payload);

    if (arrival == NULL) {
        return hvd_messages_no_memory(messages);
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
               ? hvd_messages_write(messages, rank, answer, NULL)
               : release(messages, rank, envelope->bytes);
}

int hvd_receiving_message(struct hvd_messages *messages, int rank,
                          const struct hvd_envelope *envelope, const void *payload)
{
    const struct hvd_matching_item key = {
        .rank = rank, .set = envelope->set, .tag = envelope->tag};
    struct hvd_transfer *transfer =
        (struct hvd_transfer *)hvd_matching_take(&messages->receives, &key);
    int status;

    if (transfer == NULL && hvd_messages_reason(messages, envelope->set) != NULL) {
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

int hvd_receiving_piece(struct hvd_messages *messages, struct hvd_message_peer *peer,
                        const struct hvd_envelope *envelope, const void *payload)
{
    struct hvd_transfer *transfer =
        hvd_transfer_row_find(&peer->receiving, envelope->receive, envelope->payload);

    if (transfer == NULL || envelope->at != transfer->done ||
        envelope->payload > transfer->bytes - transfer->done) {
        return hvd_messages_fail(messages, HVD_ERR_NET,
                                 "a piece of a message is not the next one");
    }
    memcpy(transfer->data + transfer->done, payload, envelope->payload);
    transfer->done += envelope->payload;
    if (transfer->done == transfer->bytes) {
        messages->receiving--;
        hvd_messages_end(messages, transfer, 0, "");
    }
    return 0;
}

int hvd_receiving_start(struct hvd_messages *messages, struct hvd_entry *entry,
                        int64_t now_ns)
{
    struct hvd_transfer *transfer =
        hvd_transfers_add(&messages->transfers, entry, now_ns);
    struct arrival *arrival;
    int status;

    if (transfer == NULL) {
        return hvd_messages_lose(messages, entry);
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

void hvd_messages_abort_set(struct hvd_messages *messages, const struct hvd_set *set)
{
    struct hvd_matching_item *item;

    while ((item = hvd_matching_take_of_set(&messages->receives, set->id)) != NULL) {
        hvd_messages_end(messages, (struct hvd_transfer *)item, HVD_ERR_ABORTED,
                         set->abort_reason);
    }
    while ((item = hvd_matching_take_of_set(&messages->arrivals, set->id)) != NULL) {
        turn_down(messages, item->rank, &((const struct arrival *)item)->envelope);
        free(item);
    }
}

bool hvd_receiving_go_on(struct hvd_messages *messages, struct hvd_transfer *transfer,
                         bool *moved)
{
    if (transfer->is_lost || !read_some(messages, transfer, moved)) {
        return false;
    }
    tell_done(messages, transfer);
    return true;
}

void hvd_receiving_drop(struct hvd_messages *messages)
{
    struct hvd_matching_item *item;

    while (hvd_matching_take_any(&messages->receives) != NULL) {
    }
    while ((item = hvd_matching_take_any(&messages->arrivals)) != NULL) {
        free(item);
    }
}
