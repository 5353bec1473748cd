/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks with which this one exchanges messages; ends and failures. */
#include <inttypes.h>
#include <stdlib.h>

#include "collectives/p2p/messages_state.h"
#include "collectives/set/sets.h"

int hvd_messages_fail(struct hvd_messages *messages, int status, const char *text)
{
    if (messages->links.failure.status == 0) {
        hvd_fail(&messages->links.failure, status, "%s", text);
    }
    return status;
}

int hvd_messages_no_memory(struct hvd_messages *messages)
{
    return hvd_messages_fail(messages, HVD_ERR_NOMEM, "no memory for a message");
}

void hvd_messages_end(struct hvd_messages *messages, struct hvd_transfer *transfer,
                      int status, const char *text)
{
    struct hvd_entry *entry = transfer->entry;

    entry->request->value = transfer->item.rank;
    hvd_transfers_remove(&messages->transfers, transfer);
    messages->config.ended(messages->config.context, entry, status, text);
}

/* NULL: it has not been aborted. */
const char *hvd_messages_reason(const struct hvd_messages *messages, int set)
{
    return hvd_sets_abort_reason(messages->config.sets, set);
}

struct hvd_message_peer *hvd_messages_peer(struct hvd_messages *messages, int rank)
{
    if (messages->peers[rank] == NULL) {
        messages->peers[rank] = calloc(1, sizeof(struct hvd_message_peer));
    }
    if (messages->peers[rank] == NULL) {
        hvd_messages_no_memory(messages);
    }
    return messages->peers[rank];
}

int hvd_messages_write(struct hvd_messages *messages, int rank,
                       struct hvd_envelope envelope, const void *payload)
{
    struct hvd_message_peer *peer = hvd_messages_peer(messages, rank);

    if (peer == NULL) {
        return HVD_ERR_NOMEM;
    }
    envelope.taken = peer->taken;
    peer->told = peer->taken;
    peer->has_written = true;
    return hvd_links_write(&messages->links, rank, &envelope, payload);
}

/* There was no memory for it. */
int hvd_messages_lose(struct hvd_messages *messages, struct hvd_entry *entry)
{
    int status = hvd_messages_no_memory(messages);

    messages->config.ended(messages->config.context, entry, status,
                           messages->links.failure.text);
    return status;
}

void hvd_messages_mismatch(struct hvd_error *err, const struct hvd_message_size *sent,
                           const struct hvd_message_size *received, int64_t tag)
{
    hvd_fail(err, HVD_ERR_MISMATCH,
             "rank %d sends %" PRIu64 " bytes (%s) to rank %d with tag %" PRId64
             ", where the receive has %" PRIu64 " bytes (%s): give both the same size",
             sent->rank, sent->bytes, hvd_dtype_name((enum hvd_dtype)sent->dtype),
             received->rank, tag, received->bytes,
             hvd_dtype_name((enum hvd_dtype)received->dtype));
}
