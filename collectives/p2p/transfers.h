/* SPDX-License-Identifier: Apache-2.0 */
/* The list of sends and receives of this rank, and warnings about those that wait long.
 * Pure. */
#ifndef HVD_TRANSFERS_H
#define HVD_TRANSFERS_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/request/request.h"
#include "collectives/p2p/matching.h"

enum hvd_transfer_state {
    HVD_TRANSFER_WAITING, /* a receive that waits for a message */
    HVD_TRANSFER_OFFERED, /* a send that waits for a receive */
    HVD_TRANSFER_SENDING, /* sends pieces */
    HVD_TRANSFER_READING, /* a receive that reads the sender's memory */
    HVD_TRANSFER_RECEIVING, /* receives pieces */
};

struct hvd_transfer {
    struct hvd_matching_item item; /* first member; its rank is the other rank */
    struct hvd_transfer *next; /* the transfer that was started next */
    struct hvd_transfer *before;
    struct hvd_transfer *next_in_row;
    struct hvd_entry *entry;
    enum hvd_transfer_state state;
    bool is_lost; /* READING: the sender is gone */
    char *data;
    uint64_t bytes;
    uint64_t done;
    /* number on this rank; `other` is the number on the other rank, once known */
    uint64_t number;
    uint64_t other;
    uint64_t address; /* READING: address in the sender's memory */
    int64_t started_ns;
};

/* All transfers of this rank; zero-initialise it. */
struct hvd_transfers {
    struct hvd_transfer *oldest;
    struct hvd_transfer *newest;
    /* The oldest transfer without a warning. All older ones were due already, and are
     * covered by a warning. */
    struct hvd_transfer *untold;
    uint64_t numbers; /* number of the latest transfer */
};

/* add creates a transfer for an entry that starts (p2p.h), or returns NULL if memory runs
 * out; remove frees it. */
struct hvd_transfer *hvd_transfers_add(struct hvd_transfers *transfers,
                                       struct hvd_entry *entry, int64_t now_ns);
void hvd_transfers_remove(struct hvd_transfers *transfers, struct hvd_transfer *transfer);

/* A list of some of the transfers, in order. Zeroed when empty. */
struct hvd_transfer_row {
    struct hvd_transfer *first;
    struct hvd_transfer *last;
};

void hvd_transfer_row_append(struct hvd_transfer_row *row, struct hvd_transfer *transfer);

/* Removes the transfer that follows `before`, or the first if that is NULL. */
void hvd_transfer_row_take_out(struct hvd_transfer_row *row, struct hvd_transfer *before);

/* Finds the transfer with this number, NULL if there is none; removes it from the row if
 * at most `bytes` of its bytes are left. */
struct hvd_transfer *hvd_transfer_row_find(struct hvd_transfer_row *row, uint64_t number,
                                           uint64_t bytes);

/* deadline returns when the oldest transfer without a warning will have waited for
 * warning_ns, or -1. warn logs that transfer if it is due; rank: this rank. */
int64_t hvd_transfers_deadline(const struct hvd_transfers *transfers, int64_t warning_ns);
void hvd_transfers_warn(struct hvd_transfers *transfers, int rank, int64_t warning_ns,
                        int64_t now_ns);

#endif
