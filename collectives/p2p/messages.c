/* SPDX-License-Identifier: Apache-2.0 */
/* Sends and receives under way on this rank: life, envelopes, what moves. */
#include "collectives/p2p/messages.h"

#include <stdlib.h>

#include "collectives/p2p/messages_state.h"
#include "collectives/p2p/receiving.h"
#include "collectives/p2p/sending.h"
#include "collectives/transport/shm/mail.h"
#include "pmix_boot/boot.h"

/* --- envelopes --- */

static int on_flush(struct hvd_messages *messages, struct hvd_message_peer *peer)
{
    if (peer->asks_to_flush) {
        return hvd_messages_fail(messages, HVD_ERR_NET, "another rank ends twice");
    }
    peer->asks_to_flush = true;
    messages->asking++;
    return 0;
}

static int on_flushed(struct hvd_messages *messages, struct hvd_message_peer *peer)
{
    if (!peer->must_flush) {
        return hvd_messages_fail(messages, HVD_ERR_NET,
                                 "another rank ends what has not been begun");
    }
    peer->must_flush = false;
    messages->flushing--;
    return 0;
}

static int on_envelope(void *context, int rank, const struct hvd_envelope *envelope,
                       const void *payload)
{
    struct hvd_messages *messages = context;
    struct hvd_message_peer *peer = hvd_messages_peer(messages, rank);

    if (messages->is_over || peer == NULL) {
        return 0;
    }
    if (envelope->taken < peer->acknowledged || envelope->taken > peer->sent) {
        return hvd_messages_fail(messages, HVD_ERR_NET,
                                 "another rank has taken more than was sent to it");
    }
    peer->acknowledged = envelope->taken;
    switch (envelope->type) {
    case HVD_ENVELOPE_EAGER:
    case HVD_ENVELOPE_OFFER:
        return hvd_receiving_message(messages, rank, envelope, payload);
    case HVD_ENVELOPE_TAKEN:
        return 0;
    case HVD_ENVELOPE_FLUSH:
        return on_flush(messages, peer);
    case HVD_ENVELOPE_FLUSHED:
        return on_flushed(messages, peer);
    case HVD_ENVELOPE_DATA:
        return hvd_receiving_piece(messages, peer, envelope, payload);
    default:
        return hvd_sending_answered(messages, peer, envelope);
    }
}

void hvd_messages_note_caller(struct hvd_messages *messages, int rank)
{
    hvd_links_note_caller(&messages->links, rank);
}

/* --- starting --- */

void hvd_messages_start(struct hvd_messages *messages, struct hvd_entry *entry,
                        int64_t now_ns)
{
    const char *reason = hvd_messages_reason(messages, entry->descriptor.set);

    if (reason != NULL) {
        messages->config.ended(messages->config.context, entry, HVD_ERR_ABORTED, reason);
    } else if (entry->descriptor.kind == HVD_KIND_SEND) {
        hvd_sending_start(messages, entry, now_ns);
    } else {
        hvd_receiving_start(messages, entry, now_ns);
    }
}

/* --- moving --- */

/* True: all of it is moved. */
static bool move_one(struct hvd_messages *messages, struct hvd_transfer *transfer,
                     bool *moved)
{
    return transfer->state == HVD_TRANSFER_SENDING
               ? hvd_sending_go_on(messages, transfer, moved)
               : hvd_receiving_go_on(messages, transfer, moved);
}

static bool move_all(struct hvd_messages *messages)
{
    struct hvd_transfer *before = NULL, *transfer = messages->moving.first;
    bool moved = false;

    while (transfer != NULL && messages->links.failure.status == 0) {
        struct hvd_transfer *next = transfer->next_in_row;

        if (move_one(messages, transfer, &moved)) {
            hvd_transfer_row_take_out(&messages->moving, before);
            hvd_messages_end(messages, transfer, 0, "");
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
    const struct hvd_messages_config *config = &messages->config;

    if (config->settled != NULL && !config->settled(config->context)) {
        return;
    }
    for (int i = 0; i < messages->config.boot->size; i++) {
        struct hvd_message_peer *peer = messages->peers[i];

        if (peer != NULL && peer->asks_to_flush && peer->receiving.first == NULL &&
            !is_reading_from(messages, i)) {
            peer->asks_to_flush = false;
            messages->asking--;
            hvd_messages_write(messages, i,
                               (struct hvd_envelope){.type = HVD_ENVELOPE_FLUSHED}, NULL);
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

void hvd_messages_suppress_wakeups(struct hvd_messages *messages, bool is_suppressed)
{
    hvd_mail_hush_messages(messages->config.mail, is_suppressed);
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

void hvd_messages_flush(struct hvd_messages *messages)
{
    const int size = messages->config.boot->size;

    for (int i = 0; i < size && messages->links.failure.status == 0; i++) {
        struct hvd_message_peer *peer = messages->peers[i];

        if (peer != NULL && peer->has_written && i != messages->config.boot->rank) {
            peer->must_flush = true;
            messages->flushing++;
            hvd_messages_write(messages, i,
                               (struct hvd_envelope){.type = HVD_ENVELOPE_FLUSH}, NULL);
        }
    }
}

bool hvd_messages_have_drained(const struct hvd_messages *messages)
{
    return messages->flushing == 0 && !hvd_messages_are_moving(messages);
}

void hvd_messages_drop(struct hvd_messages *messages, int status, const char *text)
{
    messages->is_over = true;
    messages->moving = (struct hvd_transfer_row){0};
    hvd_receiving_drop(messages);
    for (int i = 0; messages->peers != NULL && i < messages->config.boot->size; i++) {
        if (messages->peers[i] != NULL) {
            messages->peers[i]->offered = (struct hvd_transfer_row){0};
            messages->peers[i]->receiving = (struct hvd_transfer_row){0};
        }
    }
    messages->receiving = 0;
    while (messages->transfers.oldest != NULL) {
        hvd_messages_end(messages, messages->transfers.oldest, status, text);
    }
}

int hvd_messages_create(const struct hvd_messages_config *config,
                        struct hvd_messages **out, struct hvd_error *err)
{
    struct hvd_messages *messages = calloc(1, sizeof(*messages));
    const struct hvd_links_config links = {
        .boot = config->boot,
        .net = config->net,
        .mail = config->mail,
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
