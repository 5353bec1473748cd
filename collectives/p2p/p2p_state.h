/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of messages. Each has its functions here or in its header:
 *
 *   p2p.c    life, and which part an envelope is for
 *   sending       what this rank sends
 *   receiving     what it receives, or keeps for a receive; hvd_p2p_abort_set
 *   peers.c       the other ranks: what was written to them and taken of theirs; ends and failures */
#ifndef HVD_P2P_STATE_H
#define HVD_P2P_STATE_H

#include "collectives/p2p/links.h"
#include "collectives/p2p/matching.h"
#include "collectives/p2p/p2p.h"
#include "collectives/p2p/transfers.h"

/* One that this rank has exchanged messages with. */
struct hvd_p2p_peer {
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

struct hvd_p2p {
    struct hvd_p2p_config config;
    struct hvd_links links;
    struct hvd_p2p_peer **peers; /* [size], NULL until first use */
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
int hvd_p2p_fail(struct hvd_p2p *p2p, int status, const char *text);
int hvd_p2p_no_memory(struct hvd_p2p *p2p);

/* NULL without memory, which has been noted then. */
struct hvd_p2p_peer *hvd_p2p_peer_of(struct hvd_p2p *p2p, int rank);

/* Fills in what has been taken. Returns 0 or the failure of the job. */
int hvd_p2p_write(struct hvd_p2p *p2p, int rank, struct hvd_envelope envelope,
                  const void *payload);

/* The request has ended; transfer is gone. */
void hvd_p2p_end(struct hvd_p2p *p2p, struct hvd_transfer *transfer, int status,
                 const char *text);

/* Ends one for which there was no memory. */
int hvd_p2p_lose(struct hvd_p2p *p2p, struct hvd_entry *entry);

/* Why the set has been aborted; NULL: it has not. */
const char *hvd_p2p_reason(const struct hvd_p2p *p2p, int set);

/* One side of a message. */
struct hvd_p2p_size {
    int rank;
    uint64_t bytes;
    uint32_t dtype;
};

void hvd_p2p_mismatch(struct hvd_error *err, const struct hvd_p2p_size *sent,
                      const struct hvd_p2p_size *received, int64_t tag);

#endif
