/* SPDX-License-Identifier: Apache-2.0 */
/* The sends and receives of this rank. */
#include "collectives/p2p/transfers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu_binding/base/log.h"

static bool is_send(const struct hvd_entry *entry)
{
    return entry->descriptor.kind == HVD_KIND_SEND;
}

struct hvd_transfer *hvd_transfers_add(struct hvd_transfers *transfers,
                                       struct hvd_entry *entry, int64_t now_ns)
{
    struct hvd_transfer *transfer = calloc(1, sizeof(*transfer));

    if (transfer == NULL) {
        return NULL;
    }
    transfer->item = (struct hvd_matching_item){.rank = entry->descriptor.root,
                                                .set = entry->descriptor.set,
                                                .tag = entry->request->tag};
    transfer->entry = entry;
    transfer->data = hvd_entry_p2p_memory(entry);
    transfer->bytes = entry->output_bytes;
    transfer->number = ++transfers->numbers;
    transfer->started_ns = now_ns;
    transfer->before = transfers->newest;
    *(transfers->newest != NULL ? &transfers->newest->next : &transfers->oldest) =
        transfer;
    transfers->newest = transfer;
    transfers->untold = transfers->untold != NULL ? transfers->untold : transfer;
    return transfer;
}

void hvd_transfers_remove(struct hvd_transfers *transfers, struct hvd_transfer *transfer)
{
    *(transfer->before != NULL ? &transfer->before->next : &transfers->oldest) =
        transfer->next;
    *(transfer->next != NULL ? &transfer->next->before : &transfers->newest) =
        transfer->before;
    if (transfers->untold == transfer) {
        transfers->untold = transfer->next;
    }
    free(transfer);
}

/* --- rows --- */

void hvd_transfer_row_append(struct hvd_transfer_row *row, struct hvd_transfer *transfer)
{
    transfer->next_in_row = NULL;
    *(row->last != NULL ? &row->last->next_in_row : &row->first) = transfer;
    row->last = transfer;
}

void hvd_transfer_row_take_out(struct hvd_transfer_row *row, struct hvd_transfer *before)
{
    struct hvd_transfer **at = before != NULL ? &before->next_in_row : &row->first;
    struct hvd_transfer *transfer = *at;

    *at = transfer->next_in_row;
    if (row->last == transfer) {
        row->last = before;
    }
}

struct hvd_transfer *hvd_transfer_row_find(struct hvd_transfer_row *row, uint64_t number,
                                           uint64_t bytes)
{
    struct hvd_transfer *before = NULL, *transfer = row->first;

    while (transfer != NULL && transfer->number != number) {
        before = transfer;
        transfer = transfer->next_in_row;
    }
    if (transfer != NULL && transfer->bytes - transfer->done <= bytes) {
        hvd_transfer_row_take_out(row, before);
    }
    return transfer;
}

/* --- waiting for long --- */

int64_t hvd_transfers_deadline(const struct hvd_transfers *transfers, int64_t warning_ns)
{
    return transfers->untold != NULL ? transfers->untold->started_ns + warning_ns : -1;
}

static void tell_waiting(const struct hvd_transfer *transfer, int rank, int64_t waited_ns)
{
    const char *what = is_send(transfer->entry) ? "a receive by" : "a message from";
    char other[24] = "any rank";

    if (transfer->item.rank >= 0) {
        snprintf(other, sizeof(other), "rank %d", transfer->item.rank);
    }
    hvd_log(HVD_LOG_WARN,
            "rank %d has waited %lld s for %s %s (tag %" PRId64 ", process set %d)", rank,
            (long long)(waited_ns / 1000000000), what, other, transfer->item.tag,
            transfer->item.set);
}

/* Logs one line, about the oldest of the transfers that are due. It covers the others. */
void hvd_transfers_warn(struct hvd_transfers *transfers, int rank, int64_t warning_ns,
                        int64_t now_ns)
{
    struct hvd_transfer *first = transfers->untold;

    if (first == NULL || now_ns - first->started_ns < warning_ns) {
        return;
    }
    tell_waiting(first, rank, now_ns - first->started_ns);
    while (transfers->untold != NULL &&
           now_ns - transfers->untold->started_ns >= warning_ns) {
        transfers->untold = transfers->untold->next;
    }
}
