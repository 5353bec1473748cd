/* SPDX-License-Identifier: Apache-2.0 */
/* Sends messages. */
#include "collectives/p2p/sending.h"

#include "collectives/p2p/p2p_state.h"
#include "pmix_boot/boot.h"

static struct hvd_envelope describe_send(const struct hvd_entry *entry,
                                         enum hvd_envelope_type type)
{
    return (struct hvd_envelope){
        .type = type,
        .dtype = (uint32_t)entry->descriptor.dtype,
        .set = entry->descriptor.set,
        .tag = entry->request->tag,
        .bytes = entry->output_bytes,
    };
}

static bool is_eager(const struct hvd_p2p_peer *peer, uint64_t bytes)
{
    return bytes <= HVD_EAGER_BYTES &&
           peer->sent - peer->acknowledged + hvd_envelope_cost(bytes) <= HVD_EAGER_WINDOW;
}

static int send_eagerly(struct hvd_p2p *p2p, struct hvd_entry *entry)
{
    const int rank = entry->descriptor.root;
    struct hvd_envelope envelope = describe_send(entry, HVD_ENVELOPE_EAGER);
    int status;

    envelope.payload = (uint32_t)entry->output_bytes;
    p2p->peers[rank]->sent += hvd_envelope_cost(envelope.bytes);
    status = hvd_p2p_write(p2p, rank, envelope, hvd_entry_p2p_memory(entry));
    entry->request->value = rank;
    p2p->config.ended(p2p->config.context, entry, status,
                      status == 0 ? "" : p2p->links.failure.text);
    return status;
}

static int offer_message(struct hvd_p2p *p2p, struct hvd_transfer *transfer)
{
    struct hvd_envelope envelope = describe_send(transfer->entry, HVD_ENVELOPE_OFFER);

    transfer->state = HVD_TRANSFER_OFFERED;
    hvd_transfer_row_append(&p2p->peers[transfer->item.rank]->offered, transfer);
    envelope.send = transfer->number;
    envelope.at = (uint64_t)(uintptr_t)transfer->data;
    return hvd_p2p_write(p2p, transfer->item.rank, envelope, NULL);
}

bool hvd_sending_go_on(struct hvd_p2p *p2p, struct hvd_transfer *transfer, bool *moved)
{
    const int rank = transfer->item.rank;

    while (transfer->done < transfer->bytes && hvd_links_have_room(&p2p->links, rank)) {
        const uint64_t left = transfer->bytes - transfer->done;
        const uint64_t piece = left < HVD_PIECE_BYTES ? left : HVD_PIECE_BYTES;
        const struct hvd_envelope envelope = {
            .type = HVD_ENVELOPE_DATA,
            .payload = (uint32_t)piece,
            .dtype = (uint32_t)transfer->entry->descriptor.dtype,
            .receive = transfer->other,
            .at = transfer->done,
        };

        if (hvd_p2p_write(p2p, rank, envelope, transfer->data + transfer->done) != 0) {
            return false;
        }
        transfer->done += piece;
        *moved = true;
    }
    return transfer->done == transfer->bytes;
}

int hvd_sending_start(struct hvd_p2p *p2p, struct hvd_entry *entry, int64_t now_ns)
{
    const struct hvd_p2p_peer *peer = hvd_p2p_peer_of(p2p, entry->descriptor.root);
    struct hvd_transfer *transfer;

    if (peer != NULL && is_eager(peer, entry->output_bytes)) {
        return send_eagerly(p2p, entry);
    }
    transfer = peer != NULL ? hvd_transfers_add(&p2p->transfers, entry, now_ns) : NULL;
    return transfer != NULL ? offer_message(p2p, transfer) : hvd_p2p_lose(p2p, entry);
}

static void on_refusal(struct hvd_p2p *p2p, struct hvd_transfer *transfer,
                       const struct hvd_envelope *envelope)
{
    const struct hvd_p2p_size sent = {p2p->config.boot->rank, transfer->bytes,
                                      (uint32_t)transfer->entry->descriptor.dtype};
    const struct hvd_p2p_size received = {transfer->item.rank, envelope->bytes,
                                          envelope->dtype};
    struct hvd_error why;

    hvd_p2p_mismatch(&why, &sent, &received, transfer->item.tag);
    hvd_p2p_end(p2p, transfer, why.status, why.text);
}

/* Ends a send that the other rank has refused because the set is aborted. This rank may
 * learn of the abort later than the other one. */
static void on_abort(struct hvd_p2p *p2p, struct hvd_transfer *transfer)
{
    const char *reason = hvd_p2p_reason(p2p, transfer->item.set);
    struct hvd_error why;

    hvd_fail(&why, HVD_ERR_ABORTED, "process set %d has been aborted",
             transfer->item.set);
    hvd_p2p_end(p2p, transfer, HVD_ERR_ABORTED, reason != NULL ? reason : why.text);
}

int hvd_sending_answered(struct hvd_p2p *p2p, struct hvd_p2p_peer *peer,
                         const struct hvd_envelope *envelope)
{
    struct hvd_transfer *transfer =
        hvd_transfer_row_find(&peer->offered, envelope->send, UINT64_MAX);

    if (transfer == NULL) {
        return hvd_p2p_fail(
            p2p, HVD_ERR_NET,
            "another rank answered a message that this rank has not offered");
    }
    switch (envelope->type) {
    case HVD_ENVELOPE_READY:
        transfer->other = envelope->receive;
        transfer->state = HVD_TRANSFER_SENDING;
        hvd_transfer_row_append(&p2p->moving, transfer);
        return 0;
    case HVD_ENVELOPE_REFUSED:
        on_refusal(p2p, transfer, envelope);
        return 0;
    case HVD_ENVELOPE_ABORTED:
        on_abort(p2p, transfer);
        return 0;
    default:
        hvd_p2p_end(p2p, transfer, 0, "");
        return 0;
    }
}
