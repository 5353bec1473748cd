/* SPDX-License-Identifier: Apache-2.0 */
/* Point-to-point messages: opening, closing, dispatch of envelopes, progress. */
#include "collectives/p2p/p2p.h"

#include <stdlib.h>

#include "collectives/p2p/p2p_state.h"
#include "collectives/p2p/receiving.h"
#include "collectives/p2p/sending.h"
#include "collectives/transport/shm/mail.h"
#include "pmix_boot/boot.h"

/* --- envelopes --- */

static int on_flush(struct hvd_p2p *p2p, struct hvd_p2p_peer *peer)
{
    if (peer->asks_to_flush) {
        return hvd_p2p_fail(p2p, HVD_ERR_NET, "another rank sent FLUSH twice");
    }
    peer->asks_to_flush = true;
    p2p->asking++;
    return 0;
}

static int on_flushed(struct hvd_p2p *p2p, struct hvd_p2p_peer *peer)
{
    if (!peer->must_flush) {
        return hvd_p2p_fail(p2p, HVD_ERR_NET,
                            "another rank answered a FLUSH that was not sent");
    }
    peer->must_flush = false;
    p2p->flushing--;
    return 0;
}

static int on_envelope(void *context, int rank, const struct hvd_envelope *envelope,
                       const void *payload)
{
    struct hvd_p2p *p2p = context;
    struct hvd_p2p_peer *peer = hvd_p2p_peer_of(p2p, rank);

    if (p2p->is_over || peer == NULL) {
        return 0;
    }
    if (envelope->taken < peer->acknowledged || envelope->taken > peer->sent) {
        return hvd_p2p_fail(p2p, HVD_ERR_NET,
                            "another rank claims to have taken more than was sent to it");
    }
    peer->acknowledged = envelope->taken;
    switch (envelope->type) {
    case HVD_ENVELOPE_EAGER:
    case HVD_ENVELOPE_OFFER:
        return hvd_receiving_message(p2p, rank, envelope, payload);
    case HVD_ENVELOPE_TAKEN:
        return 0;
    case HVD_ENVELOPE_FLUSH:
        return on_flush(p2p, peer);
    case HVD_ENVELOPE_FLUSHED:
        return on_flushed(p2p, peer);
    case HVD_ENVELOPE_DATA:
        return hvd_receiving_piece(p2p, peer, envelope, payload);
    default:
        return hvd_sending_answered(p2p, peer, envelope);
    }
}

void hvd_p2p_note_caller(struct hvd_p2p *p2p, int rank)
{
    hvd_links_note_caller(&p2p->links, rank);
}

/* --- starting --- */

void hvd_p2p_start(struct hvd_p2p *p2p, struct hvd_entry *entry, int64_t now_ns)
{
    const char *reason = hvd_p2p_reason(p2p, entry->descriptor.set);

    if (reason != NULL) {
        p2p->config.ended(p2p->config.context, entry, HVD_ERR_ABORTED, reason);
    } else if (entry->descriptor.kind == HVD_KIND_SEND) {
        hvd_sending_start(p2p, entry, now_ns);
    } else {
        hvd_receiving_start(p2p, entry, now_ns);
    }
}

/* --- moving --- */

/* Advances one transfer. Returns true once all of its bytes are transferred. */
static bool move_one(struct hvd_p2p *p2p, struct hvd_transfer *transfer, bool *moved)
{
    return transfer->state == HVD_TRANSFER_SENDING
               ? hvd_sending_go_on(p2p, transfer, moved)
               : hvd_receiving_go_on(p2p, transfer, moved);
}

static bool move_all(struct hvd_p2p *p2p)
{
    struct hvd_transfer *before = NULL, *transfer = p2p->moving.first;
    bool moved = false;

    while (transfer != NULL && p2p->links.failure.status == 0) {
        struct hvd_transfer *next = transfer->next_in_row;

        if (move_one(p2p, transfer, &moved)) {
            hvd_transfer_row_take_out(&p2p->moving, before);
            hvd_p2p_end(p2p, transfer, 0, "");
        } else {
            before = transfer;
        }
        transfer = next;
    }
    return moved;
}

static bool is_reading_from(const struct hvd_p2p *p2p, int rank)
{
    const struct hvd_transfer *transfer = p2p->moving.first;

    while (transfer != NULL &&
           (transfer->state != HVD_TRANSFER_READING || transfer->item.rank != rank)) {
        transfer = transfer->next_in_row;
    }
    return transfer != NULL;
}

/* Answers a rank's FLUSH only when nothing from that rank is being transferred: after the
 * answer its memory may be gone. */
static void answer_flushes(struct hvd_p2p *p2p)
{
    const struct hvd_p2p_config *config = &p2p->config;

    if (config->settled != NULL && !config->settled(config->context)) {
        return;
    }
    for (int i = 0; i < p2p->config.boot->size; i++) {
        struct hvd_p2p_peer *peer = p2p->peers[i];

        if (peer != NULL && peer->asks_to_flush && peer->receiving.first == NULL &&
            !is_reading_from(p2p, i)) {
            peer->asks_to_flush = false;
            p2p->asking--;
            hvd_p2p_write(p2p, i, (struct hvd_envelope){.type = HVD_ENVELOPE_FLUSHED},
                          NULL);
        }
    }
}

bool hvd_p2p_progress(struct hvd_p2p *p2p)
{
    bool moved = hvd_links_progress(&p2p->links);

    if (p2p->moving.first != NULL) {
        moved |= move_all(p2p);
    }
    if (p2p->asking > 0 && !p2p->is_over) {
        answer_flushes(p2p);
    }
    return moved;
}

/* A transfer that reads memory can always continue. One that sends pieces can continue
 * only if its link has room. */
bool hvd_p2p_have_news(const struct hvd_p2p *p2p)
{
    const struct hvd_transfer *transfer = p2p->moving.first;
    bool have = p2p->links.failure.status != 0 && !p2p->is_over;

    for (; transfer != NULL && !have; transfer = transfer->next_in_row) {
        have = transfer->state == HVD_TRANSFER_SENDING
                   ? hvd_links_have_room(&p2p->links, transfer->item.rank)
                   : !transfer->is_lost;
    }
    return have || hvd_links_have_news(&p2p->links);
}

void hvd_p2p_suppress_wakeups(struct hvd_p2p *p2p, bool is_suppressed)
{
    hvd_mail_suppress_p2p(p2p->config.mail, is_suppressed);
}

const struct hvd_error *hvd_p2p_failure(const struct hvd_p2p *p2p)
{
    return &p2p->links.failure;
}

bool hvd_p2p_are_pending(const struct hvd_p2p *p2p)
{
    return p2p->transfers.oldest != NULL;
}

bool hvd_p2p_are_moving(const struct hvd_p2p *p2p)
{
    return p2p->moving.first != NULL || p2p->receiving > 0;
}

int64_t hvd_p2p_deadline(const struct hvd_p2p *p2p)
{
    const int64_t warning_ns = p2p->config.warning_ns;

    return warning_ns > 0 ? hvd_transfers_deadline(&p2p->transfers, warning_ns) : -1;
}

void hvd_p2p_warn(struct hvd_p2p *p2p, int64_t now_ns)
{
    if (p2p->config.warning_ns > 0) {
        hvd_transfers_warn(&p2p->transfers, p2p->config.boot->rank,
                           p2p->config.warning_ns, now_ns);
    }
}

/* --- the end --- */

void hvd_p2p_flush(struct hvd_p2p *p2p)
{
    const int size = p2p->config.boot->size;

    for (int i = 0; i < size && p2p->links.failure.status == 0; i++) {
        struct hvd_p2p_peer *peer = p2p->peers[i];

        if (peer != NULL && peer->has_written && i != p2p->config.boot->rank) {
            peer->must_flush = true;
            p2p->flushing++;
            hvd_p2p_write(p2p, i, (struct hvd_envelope){.type = HVD_ENVELOPE_FLUSH},
                          NULL);
        }
    }
}

bool hvd_p2p_have_drained(const struct hvd_p2p *p2p)
{
    return p2p->flushing == 0 && !hvd_p2p_are_moving(p2p);
}

void hvd_p2p_drop(struct hvd_p2p *p2p, int status, const char *text)
{
    p2p->is_over = true;
    p2p->moving = (struct hvd_transfer_row){0};
    hvd_receiving_drop(p2p);
    for (int i = 0; p2p->peers != NULL && i < p2p->config.boot->size; i++) {
        if (p2p->peers[i] != NULL) {
            p2p->peers[i]->offered = (struct hvd_transfer_row){0};
            p2p->peers[i]->receiving = (struct hvd_transfer_row){0};
        }
    }
    p2p->receiving = 0;
    while (p2p->transfers.oldest != NULL) {
        hvd_p2p_end(p2p, p2p->transfers.oldest, status, text);
    }
}

int hvd_p2p_create(const struct hvd_p2p_config *config, struct hvd_p2p **out,
                   struct hvd_error *err)
{
    struct hvd_p2p *p2p = calloc(1, sizeof(*p2p));
    const struct hvd_links_config links = {
        .boot = config->boot,
        .net = config->net,
        .mail = config->mail,
        .arrived = on_envelope,
        .context = p2p,
    };
    int status;

    if (p2p == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for messages");
    }
    p2p->config = *config;
    p2p->peers = calloc((size_t)config->boot->size, sizeof(p2p->peers[0]));
    status = p2p->peers == NULL ? hvd_fail(err, HVD_ERR_NOMEM, "no memory for messages")
                                : hvd_links_init(&p2p->links, &links, err);
    if (status != 0) {
        hvd_p2p_destroy(p2p);
        return status;
    }
    *out = p2p;
    return 0;
}

void hvd_p2p_destroy(struct hvd_p2p *p2p)
{
    if (p2p == NULL) {
        return;
    }
    hvd_p2p_drop(p2p, HVD_ERR_SHUTDOWN, "the job is over");
    for (int i = 0; p2p->peers != NULL && i < p2p->config.boot->size; i++) {
        free(p2p->peers[i]);
    }
    free(p2p->peers);
    hvd_links_finish(&p2p->links);
    free(p2p);
}
