/* SPDX-License-Identifier: Apache-2.0 */
/* The state of point-to-point messaging, shared by its parts. Each part has its functions
 * here or in its own header:
 *
 *   p2p.c         opening, closing and dispatch of envelopes
 *   sending       messages that this rank sends
 *   receiving     messages that it receives, or stores until a receive starts;
 *                 hvd_p2p_abort_set
 *   peers.c       functions that the others share: per-rank state, ends, errors */
#ifndef HVD_P2P_STATE_H
#define HVD_P2P_STATE_H

#include "collectives/p2p/links.h"
#include "collectives/p2p/matching.h"
#include "collectives/p2p/p2p.h"
#include "collectives/p2p/transfers.h"

/* Another rank with which this one has exchanged messages. */
struct hvd_p2p_peer {
    uint64_t sent; /* cost of all small messages sent to the peer */
    uint64_t acknowledged; /* the part of `sent` that the peer no longer stores */
    /* cost of all small messages from the peer that this rank no longer stores */
    uint64_t taken;
    uint64_t told; /* `taken` as this rank last told it to the peer */
    bool has_written; /* this rank has written to the peer */
    bool must_flush; /* the peer has yet to answer this rank's FLUSH */
    bool asks_to_flush; /* the peer waits for the answer to its FLUSH */
    struct hvd_transfer_row offered;
    struct hvd_transfer_row receiving;
};

struct hvd_p2p {
    struct hvd_p2p_config config;
    struct hvd_links links;
    struct hvd_p2p_peer **peers; /* [size], NULL until first use */
    struct hvd_matching receives; /* items are struct hvd_transfer */
    struct hvd_matching arrivals; /* items are struct arrival of receiving.c */
    struct hvd_transfers transfers;
    struct hvd_transfer_row moving; /* transfers in state SENDING or READING */
    int receiving; /* number of transfers that arrive in pieces */
    /* number of peers whose answer to FLUSH is due here, and number that wait for ours */
    int flushing;
    int asking;
    bool is_over; /* all messages have been dropped */
};

/* --- peers.c --- */

/* Ends the job; the first failure is kept. Returns status. */
int hvd_p2p_fail(struct hvd_p2p *p2p, int status, const char *text);
int hvd_p2p_no_memory(struct hvd_p2p *p2p);

/* Returns the peer, creating it at first use. If memory runs out, records the failure and
 * returns NULL. */
struct hvd_p2p_peer *hvd_p2p_peer_of(struct hvd_p2p *p2p, int rank);

/* Fills in `taken` and sends the envelope. Returns 0 or the failure of the job. */
int hvd_p2p_write(struct hvd_p2p *p2p, int rank, struct hvd_envelope envelope,
                  const void *payload);

/* Ends the request with this status and frees the transfer. */
void hvd_p2p_end(struct hvd_p2p *p2p, struct hvd_transfer *transfer, int status,
                 const char *text);

/* Ends the request of an entry, and the job, because memory ran out. Returns
 * HVD_ERR_NOMEM. */
int hvd_p2p_lose(struct hvd_p2p *p2p, struct hvd_entry *entry);

/* Returns the reason why the set has been aborted; NULL if it has not. */
const char *hvd_p2p_reason(const struct hvd_p2p *p2p, int set);

/* The size and type of a message as one of its two ranks gives them. */
struct hvd_p2p_size {
    int rank;
    uint64_t bytes;
    uint32_t dtype;
};

void hvd_p2p_mismatch(struct hvd_error *err, const struct hvd_p2p_size *sent,
                      const struct hvd_p2p_size *received, int64_t tag);

#endif
