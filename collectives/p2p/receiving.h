/* SPDX-License-Identifier: Apache-2.0 */
/* Receives messages, and stores small messages and offers that arrive before their
 * receive. A large message is read from the sender's memory or arrives in pieces.
 *
 * Functions that return int return 0 or the failure of the job. */
#ifndef HVD_RECEIVING_H
#define HVD_RECEIVING_H

#include <stdbool.h>
#include <stdint.h>

struct hvd_entry;
struct hvd_envelope;
struct hvd_p2p_peer;
struct hvd_p2p;
struct hvd_transfer;

int hvd_receiving_start(struct hvd_p2p *p2p, struct hvd_entry *entry, int64_t now_ns);

/* Handles a small message of the rank, or the offer of a large one. */
int hvd_receiving_message(struct hvd_p2p *p2p, int rank,
                          const struct hvd_envelope *envelope, const void *payload);

/* Handles the next piece of a message that this rank asked for. */
int hvd_receiving_piece(struct hvd_p2p *p2p, struct hvd_p2p_peer *peer,
                        const struct hvd_envelope *envelope, const void *payload);

/* Reads more of a message from the sender's memory; returns true once the whole message
 * is here. */
bool hvd_receiving_go_on(struct hvd_p2p *p2p, struct hvd_transfer *transfer, bool *moved);

/* Drops all receives and stored messages. */
void hvd_receiving_drop(struct hvd_p2p *p2p);

#endif
