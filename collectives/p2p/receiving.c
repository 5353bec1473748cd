/* SPDX-License-Identifier: Apache-2.0 */
/* Receives messages, and stores those that no receive waits for. */
#include "collectives/p2p/receiving.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/hvd.h"
#include "collectives/p2p/p2p_state.h"
#include "collectives/set/set.h"
#include "collectives/transport/shm/shm_reach.h"
#include "pmix_boot/boot.h"

_Static_assert((int)HVD_ANY_SOURCE == (int)HVD_MATCHING_ANY, "the interface's number");

/* Bytes to read of one message before other messages get their turn. */
static const uint64_t read_at_once = 4 << 20;

/* TAKEN tells the sender each time this much of its window has been freed. */
static const uint64_t told_every = HVD_EAGER_WINDOW / 4;

/* A message that has arrived and waits for a receive. */
struct arrival {
    struct hvd_matching_item item; /* first member */
    struct hvd_envelope envelope;
    char payload[];
};

/* Gives the sender its part of the window back, once a small message is no longer
 * stored. */
static int release_memory(struct hvd_p2p *p2p, int rank, uint64_t bytes)
{
    struct hvd_p2p_peer *peer = p2p->peers[rank];

    peer->taken += hvd_envelope_cost(bytes);
    return peer->taken - peer->told < told_every
               ? 0
               : hvd_p2p_write(p2p, rank,
                               (struct hvd_envelope){.type = HVD_ENVELOPE_TAKEN}, NULL);
}

/* Reads from the sender's memory. Returns true once the whole message is here. */
static bool read_some(struct hvd_p2p *p2p, struct hvd_transfer *transfer, bool *moved)
{
    const uint64_t left = transfer->bytes - transfer->done;
    const uint64_t piece = left < read_at_once ? left : read_at_once;
    const int local_rank = hvd_links_local_rank(&p2p->links, transfer->item.rank);
    int status =
        hvd_shm_read(p2p->config.shm, local_rank, transfer->address + transfer->done,
                     transfer->data + transfer->done, piece);

    if (status != 0 && status != HVD_INPROGRESS) {
        hvd_p2p_fail(p2p, status, "cannot read the memory of another rank of this node");
    }
    if (status != 0) {
        transfer->is_lost = true; /* the sender is gone; the control tree reports that */
        return false;
    }
    transfer->done += piece;
    *moved = true;
    return transfer->done == transfer->bytes;
}

static int tell_done(struct hvd_p2p *p2p, const struct hvd_transfer *transfer)
{
    const struct hvd_envelope envelope = {.type = HVD_ENVELOPE_DONE,
                                          .send = transfer->other};

    return hvd_p2p_write(p2p, transfer->item.rank, envelope, NULL);
}

static int ask_for_pieces(struct hvd_p2p *p2p, struct hvd_transfer *transfer)
{
    const struct hvd_envelope envelope = {
        .type = HVD_ENVELOPE_READY,
        .send = transfer->other,
        .receive = transfer->number,
    };

    transfer->state = HVD_TRANSFER_RECEIVING;
    hvd_transfer_row_append(&p2p->peers[transfer->item.rank]->receiving, transfer);
    p2p->receiving++;
    return hvd_p2p_write(p2p, transfer->item.rank, envelope, NULL);
}

/* Returns true if the message can be read in place, and sets *done if it is complete;
 * false if it has to arrive in pieces. */
static bool read_in_place(struct hvd_p2p *p2p, struct hvd_transfer *transfer, bool *done)
{
    const int rank = transfer->item.rank;
    bool moved = false;

    if (transfer->bytes == 0) {
        *done = true;
        return true;
    }
    if (rank == p2p->config.boot->rank) {
        memmove(transfer->data, (const void *)(uintptr_t)transfer->address,
                transfer->bytes);
        *done = true;
        return true;
    }
    if (hvd_links_local_rank(&p2p->links, rank) < 0 || !hvd_shm_settle(p2p->config.shm) ||
        !hvd_shm_can_reach(p2p->config.shm)) {
        return false;
    }
    *done = read_some(p2p, transfer, &moved);
    return true;
}

static int fetch_message(struct hvd_p2p *p2p, struct hvd_transfer *transfer,
                         const struct hvd_envelope *envelope)
{
    bool is_done = false;
    int status;

    transfer->other = envelope->send;
    transfer->address = envelope->at;
    if (!read_in_place(p2p, transfer, &is_done)) {
        return ask_for_pieces(p2p, transfer);
    }
    if (!is_done) {
        transfer->state = HVD_TRANSFER_READING;
        hvd_transfer_row_append(&p2p->moving, transfer);
        return p2p->links.failure.status;
    }
    status = tell_done(p2p, transfer);
    hvd_p2p_end(p2p, transfer, 0, "");
    return status;
}

/* Fails the receive, and the send if it has not ended. */
static int refuse_message(struct hvd_p2p *p2p, struct hvd_transfer *transfer,
                          const struct hvd_envelope *envelope)
{
    const struct hvd_p2p_size sent = {transfer->item.rank, envelope->bytes,
                                      envelope->dtype};
    const struct hvd_p2p_size received = {p2p->config.boot->rank, transfer->bytes,
                                          (uint32_t)transfer->entry->descriptor.dtype};
    const struct hvd_envelope answer = {
        .type = HVD_ENVELOPE_REFUSED,
        .dtype = received.dtype,
        .bytes = received.bytes,
        .send = envelope->send,
    };
    struct hvd_error why;
    int status = 0;

    hvd_p2p_mismatch(&why, &sent, &received, transfer->item.tag);
    if (envelope->type == HVD_ENVELOPE_OFFER) {
        status = hvd_p2p_write(p2p, transfer->item.rank, answer, NULL);
    }
    hvd_p2p_end(p2p, transfer, why.status, why.text);
    return status;
}

/* Handles a message and a receive that match. */
static int meet_receive(struct hvd_p2p *p2p, struct hvd_transfer *transfer,
                        const struct hvd_envelope *envelope, const void *payload)
{
    if (envelope->bytes != transfer->bytes) {
        return refuse_message(p2p, transfer, envelope);
    }
    if (envelope->type == HVD_ENVELOPE_OFFER) {
        return fetch_message(p2p, transfer, envelope);
    }
    if (envelope->bytes > 0) {
        memcpy(transfer->data, payload, envelope->bytes);
    }
    hvd_p2p_end(p2p, transfer, 0, "");
    return 0;
}

static int keep_arrival(struct hvd_p2p *p2p, int rank,
                        const struct hvd_envelope *envelope, const void *payload)
{
    struct arrival *arrival = malloc(sizeof(*arrival) + envelope->payload);

    if (arrival == NULL) {
        return hvd_p2p_no_memory(p2p);
    }
    arrival->item = (struct hvd_matching_item){
        .rank = rank, .set = envelope->set, .tag = envelope->tag};
    arrival->envelope = *envelope;
    if (envelope->payload > 0) {
        memcpy(arrival->payload, payload, envelope->payload);
    }
    hvd_matching_enter(&p2p->arrivals, &arrival->item);
    return 0;
}

/* Discards a message in an aborted set, so that its sender can continue. */
static int turn_down(struct hvd_p2p *p2p, int rank, const struct hvd_envelope *envelope)
{
    const struct hvd_envelope answer = {
        .type = HVD_ENVELOPE_ABORTED, .set = envelope->set, .send = envelope->send};

    return envelope->type == HVD_ENVELOPE_OFFER
               ? hvd_p2p_write(p2p, rank, answer, NULL)
               : release_memory(p2p, rank, envelope->bytes);
}

int hvd_receiving_message(struct hvd_p2p *p2p, int rank,
                          const struct hvd_envelope *envelope, const void *payload)
{
    const struct hvd_matching_item key = {
        .rank = rank, .set = envelope->set, .tag = envelope->tag};
    struct hvd_transfer *transfer =
        (struct hvd_transfer *)hvd_matching_take(&p2p->receives, &key);
    int status;

    if (transfer == NULL && hvd_p2p_reason(p2p, envelope->set) != NULL) {
        return turn_down(p2p, rank, envelope);
    }
    if (transfer == NULL) {
        return keep_arrival(p2p, rank, envelope, payload);
    }
    transfer->item.rank = rank;
    status = meet_receive(p2p, transfer, envelope, payload);
    return status != 0 || envelope->type != HVD_ENVELOPE_EAGER
               ? status
               : release_memory(p2p, rank, envelope->bytes);
}

int hvd_receiving_piece(struct hvd_p2p *p2p, struct hvd_p2p_peer *peer,
                        const struct hvd_envelope *envelope, const void *payload)
{
    struct hvd_transfer *transfer =
        hvd_transfer_row_find(&peer->receiving, envelope->receive, envelope->payload);

    if (transfer == NULL || envelope->at != transfer->done ||
        envelope->payload > transfer->bytes - transfer->done) {
        return hvd_p2p_fail(p2p, HVD_ERR_NET,
                            "a piece of a message arrived out of order");
    }
    memcpy(transfer->data + transfer->done, payload, envelope->payload);
    transfer->done += envelope->payload;
    if (transfer->done == transfer->bytes) {
        p2p->receiving--;
        hvd_p2p_end(p2p, transfer, 0, "");
    }
    return 0;
}

int hvd_receiving_start(struct hvd_p2p *p2p, struct hvd_entry *entry, int64_t now_ns)
{
    struct hvd_transfer *transfer = hvd_transfers_add(&p2p->transfers, entry, now_ns);
    struct arrival *arrival;
    int status;

    if (transfer == NULL) {
        return hvd_p2p_lose(p2p, entry);
    }
    arrival = (struct arrival *)hvd_matching_take(&p2p->arrivals, &transfer->item);
    if (arrival == NULL) {
        transfer->state = HVD_TRANSFER_WAITING;
        hvd_matching_enter(&p2p->receives, &transfer->item);
        return 0;
    }
    transfer->item.rank = arrival->item.rank;
    status = meet_receive(p2p, transfer, &arrival->envelope, arrival->payload);
    if (status == 0 && arrival->envelope.type == HVD_ENVELOPE_EAGER) {
        status = release_memory(p2p, arrival->item.rank, arrival->envelope.bytes);
    }
    free(arrival);
    return status;
}

void hvd_p2p_abort_set(struct hvd_p2p *p2p, const struct hvd_set *set)
{
    struct hvd_matching_item *item;

    while ((item = hvd_matching_take_of_set(&p2p->receives, set->id)) != NULL) {
        hvd_p2p_end(p2p, (struct hvd_transfer *)item, HVD_ERR_ABORTED, set->abort_reason);
    }
    while ((item = hvd_matching_take_of_set(&p2p->arrivals, set->id)) != NULL) {
        turn_down(p2p, item->rank, &((const struct arrival *)item)->envelope);
        free(item);
    }
}

bool hvd_receiving_go_on(struct hvd_p2p *p2p, struct hvd_transfer *transfer, bool *moved)
{
    if (transfer->is_lost || !read_some(p2p, transfer, moved)) {
        return false;
    }
    tell_done(p2p, transfer);
    return true;
}

void hvd_receiving_drop(struct hvd_p2p *p2p)
{
    struct hvd_matching_item *item;

    while (hvd_matching_take_any(&p2p->receives) != NULL) {
    }
    while ((item = hvd_matching_take_any(&p2p->arrivals)) != NULL) {
        free(item);
    }
}
