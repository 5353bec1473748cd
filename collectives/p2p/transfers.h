/* SPDX-License-Identifier: Apache-2.0 */
/* Sends and receives under way on this rank, and which of them wait for long. Pure. */
#ifndef HVD_TRANSFERS_H
#define HVD_TRANSFERS_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/request/request.h"
#include "collectives/p2p/matching.h"

enum hvd_transfer_state {
    HVD_TRANSFER_WAITING, /* receive: for a message */
    HVD_TRANSFER_OFFERED, /* send: for a receive */
    HVD_TRANSFER_SENDING, /* in pieces */
    HVD_TRANSFER_READING, /* receive: from the sender's memory */
    HVD_TRANSFER_RECEIVING, /* in pieces */
};

struct hvd_transfer {
    struct hvd_matching_item item; /* first; rank: the other one */
    struct hvd_transfer *next; /* in the order in which they were started */
    struct hvd_transfer *before;
    struct hvd_transfer *next_in_row;
    struct hvd_entry *entry;
    enum hvd_transfer_state state;
    bool is_lost; /* READING: the sender is gone */
    char *data;
    uint64_t bytes;
    uint64_t done;
    uint64_t number; /* here, of this one; and on the other rank, once it is known: */
    uint64_t other;
    uint64_t address; /* READING: there */
    int64_t started_ns;
};

/* All, zeroed at first. */
struct hvd_transfers {
    struct hvd_transfer *oldest;
    struct hvd_transfer *newest;
    /* the oldest that nobody was told of: those before it wait for long */
    struct hvd_transfer *untold;
    uint64_t numbers; /* given so far */
};

/* One for an entry that begins (p2p.h), and its end; NULL without memory. */
struct hvd_transfer *hvd_transfers_add(struct hvd_transfers *transfers,
                                       struct hvd_entry *entry, int64_t now_ns);
void hvd_transfers_remove(struct hvd_transfers *transfers, struct hvd_transfer *transfer);

/* Some of them, in their order. Zeroed is empty. */
struct hvd_transfer_row {
    struct hvd_transfer *first;
    struct hvd_transfer *last;
};

void hvd_transfer_row_append(struct hvd_transfer_row *row, struct hvd_transfer *transfer);

/* What is behind `before`, NULL: the first. */
void hvd_transfer_row_take_out(struct hvd_transfer_row *row, struct hvd_transfer *before);

/* The one with this number, taken out if so many bytes are left of it, or less; NULL:
 * there is none. */
struct hvd_transfer *hvd_transfer_row_find(struct hvd_transfer_row *row, uint64_t number,
                                           uint64_t bytes);

/* When one will have waited so long, -1: never; and tells of the oldest that has, once.
 * rank: this one. */
int64_t hvd_transfers_deadline(const struct hvd_transfers *transfers, int64_t warning_ns);
void hvd_transfers_warn(struct hvd_transfers *transfers, int rank, int64_t warning_ns,
                        int64_t now_ns);

#endif
