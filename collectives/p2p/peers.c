/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that sending and receiving share: per-rank state, ending requests, errors. */
#include <inttypes.h>
#include <stdlib.h>

#include "collectives/p2p/p2p_state.h"
#include "collectives/set/sets.h"

int hvd_p2p_fail(struct hvd_p2p *p2p, int status, const char *text)
{
    if (p2p->links.failure.status == 0) {
        hvd_fail(&p2p->links.failure, status, "%s", text);
    }
    return status;
}

int hvd_p2p_no_memory(struct hvd_p2p *p2p)
{
    return hvd_p2p_fail(p2p, HVD_ERR_NOMEM, "no memory for a message");
}

void hvd_p2p_end(struct hvd_p2p *p2p, struct hvd_transfer *transfer, int status,
                 const char *text)
{
    struct hvd_entry *entry = transfer->entry;

    entry->request->value = transfer->item.rank;
    hvd_transfers_remove(&p2p->transfers, transfer);
    p2p->config.ended(p2p->config.context, entry, status, text);
}

const char *hvd_p2p_reason(const struct hvd_p2p *p2p, int set)
{
    return hvd_sets_abort_reason(p2p->config.sets, set);
}

struct hvd_p2p_peer *hvd_p2p_peer_of(struct hvd_p2p *p2p, int rank)
{
    if (p2p->peers[rank] == NULL) {
        p2p->peers[rank] = calloc(1, sizeof(struct hvd_p2p_peer));
    }
    if (p2p->peers[rank] == NULL) {
        hvd_p2p_no_memory(p2p);
    }
    return p2p->peers[rank];
}

int hvd_p2p_write(struct hvd_p2p *p2p, int rank, struct hvd_envelope envelope,
                  const void *payload)
{
    struct hvd_p2p_peer *peer = hvd_p2p_peer_of(p2p, rank);

    if (peer == NULL) {
        return HVD_ERR_NOMEM;
    }
    envelope.taken = peer->taken;
    peer->told = peer->taken;
    peer->has_written = true;
    return hvd_links_write(&p2p->links, rank, &envelope, payload);
}

int hvd_p2p_lose(struct hvd_p2p *p2p, struct hvd_entry *entry)
{
    int status = hvd_p2p_no_memory(p2p);

    p2p->config.ended(p2p->config.context, entry, status, p2p->links.failure.text);
    return status;
}

void hvd_p2p_mismatch(struct hvd_error *err, const struct hvd_p2p_size *sent,
                      const struct hvd_p2p_size *received, int64_t tag)
{
    hvd_fail(err, HVD_ERR_MISMATCH,
             "rank %d sends %" PRIu64 " bytes (%s) to rank %d with tag %" PRId64
             ", but the receive expects %" PRIu64
             " bytes (%s): use the same size for both",
             sent->rank, sent->bytes, hvd_dtype_name((enum hvd_dtype)sent->dtype),
             received->rank, tag, received->bytes,
             hvd_dtype_name((enum hvd_dtype)received->dtype));
}
