/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of point-to-point messaging. Each has its functions here or in its own
 * header:
 *
 *   p2p.c         opening, closing and dispatch of envelopes
 *   sending       messages that this rank sends
 *   receiving     messages that it receives or stores for a receive; hvd_p2p_abort_set
 *   peers.c       per-rank state: what was written and taken; ends and failures */
#ifndef HVD_P2P_STATE_H
#define HVD_P2P_STATE_H

#include "collectives/p2p/links.h"
#include "collectives/p2p/matching.h"
#include "collectives/p2p/p2p.h"
#include "collectives/p2p/transfers.h"

/* A rank that this one has exchanged messages with. */
struct hvd_p2p_peer {
    uint64_t sent; /* cost of all small messages sent to it */
    uint64_t acknowledged; /* the part of `sent` that it has taken */
    uint64_t taken; /* cost of all its small messages taken here */
    uint64_t told; /* the part of `taken` that it knows of */
    bool has_written; /* this rank has written to it */
    bool must_flush; /* its answer to FLUSH has not arrived */
    bool asks_to_flush; /* it waits for the answer to its FLUSH */
    struct hvd_transfer_row offered;
    struct hvd_transfer_row receiving;
};

struct hvd_p2p {
    struct hvd_p2p_config config;
    struct hvd_links links;
    struct hvd_p2p_peer **peers; /* [size], NULL until first use */
    struct hvd_matching receives; /* struct hvd_transfer */
    struct hvd_matching arrivals; /* struct arrival of receiving.c */
    struct hvd_transfers transfers;
    struct hvd_transfer_row moving; /* transfers in state SENDING or READING */
    int receiving; /* number of transfers in pieces */
    /* number of peers whose answer is missing, and of peers that wait for an answer: */
    int flushing;
    int asking;
    bool is_over; /* all messages have been dropped */
};

/* --- peers.c --- */

/* Ends the job; the first failure is kept. Returns status. */
int hvd_p2p_fail(struct hvd_p2p *p2p, int status, const char *text);
int hvd_p2p_no_memory(struct hvd_p2p *p2p);

/* Returns NULL if memory runs out, after recording the failure. */
struct hvd_p2p_peer *hvd_p2p_peer_of(struct hvd_p2p *p2p, int rank);

/* Fills in `taken` and writes. Returns 0 or the failure of the job. */
int hvd_p2p_write(struct hvd_p2p *p2p, int rank, struct hvd_envelope envelope,
                  const void *payload);

/* Ends the request and frees transfer. */
void hvd_p2p_end(struct hvd_p2p *p2p, struct hvd_transfer *transfer, int status,
                 const char *text);

/* Ends an entry for which memory ran out. */
int hvd_p2p_lose(struct hvd_p2p *p2p, struct hvd_entry *entry);

/* Tells why the set has been aborted, or returns NULL. */
const char *hvd_p2p_reason(const struct hvd_p2p *p2p, int set);

/* One end of a message. */
struct hvd_p2p_size {
    int rank;
    uint64_t bytes;
    uint32_t dtype;
};

void hvd_p2p_mismatch(struct hvd_error *err, const struct hvd_p2p_size *sent,
                      const struct hvd_p2p_size *received, int64_t tag);

#endif
