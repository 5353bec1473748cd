/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of messages. Each has its functions here or in its header:
 *
 *   messages.c    life, and which part an envelope is for
 *   sending       what this rank sends
 *   receiving     what it receives, or keeps for a receive; hvd_messages_abort_set
 *   peers.c       the other ranks: what was written to them and taken of theirs; ends and failures */
#ifndef HVD_MESSAGES_STATE_H
#define HVD_MESSAGES_STATE_H

#include "collectives/p2p/links.h"
#include "collectives/p2p/matching.h"
#include "collectives/p2p/messages.h"
#include "collectives/p2p/transfers.h"

/* One that this rank has exchanged messages with. */
struct hvd_message_peer {
    uint64_t sent; /* small messages to it, by cost; */
    uint64_t acknowledged; /* of that, what it has taken */
    uint64_t taken; /* small messages of it, by cost */
    uint64_t told; /* of that, what it knows */
    bool has_written; /* this rank, to it */
    bool must_flush; /* its answer to FLUSH has not come */
    bool asks_to_flush; /* it waits for mine */
    struct hvd_transfer_row offered;
    struct hvd_transfer_row receiving;
};

struct hvd_messages {
    struct hvd_messages_config config;
    struct hvd_links links;
    struct hvd_message_peer **peers; /* [size], NULL until first use */
    struct hvd_matching receives; /* struct hvd_transfer */
    struct hvd_matching arrivals; /* of receiving.c */
    struct hvd_transfers transfers;
    struct hvd_transfer_row moving; /* SENDING, READING */
    int receiving; /* in pieces */
    int flushing; /* peers that have to answer; and that wait for an answer: */
    int asking;
    bool is_over; /* dropped */
};

/* --- peers.c --- */

/* The job cannot go on; the first failure stays. Returns status. */
int hvd_messages_fail(struct hvd_messages *messages, int status, const char *text);
int hvd_messages_no_memory(struct hvd_messages *messages);

/* NULL without memory, which has been noted then. */
struct hvd_message_peer *hvd_messages_peer(struct hvd_messages *messages, int rank);

/* Fills in what has been taken. Returns 0 or the failure of the job. */
int hvd_messages_write(struct hvd_messages *messages, int rank,
                       struct hvd_envelope envelope, const void *payload);

/* The request has ended; transfer is gone. */
void hvd_messages_end(struct hvd_messages *messages, struct hvd_transfer *transfer,
                      int status, const char *text);

/* Ends one for which there was no memory. */
int hvd_messages_lose(struct hvd_messages *messages, struct hvd_entry *entry);

/* Why the set has been aborted; NULL: it has not. */
const char *hvd_messages_reason(const struct hvd_messages *messages, int set);

/* One side of a message. */
struct hvd_message_size {
    int rank;
    uint64_t bytes;
    uint32_t dtype;
};

void hvd_messages_mismatch(struct hvd_error *err, const struct hvd_message_size *sent,
                           const struct hvd_message_size *received, int64_t tag);

#endif
