/* SPDX-License-Identifier: Apache-2.0 */
/* What this rank receives: messages that are there already or come later, kept until
 * then, read where they are or in pieces.
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

/* A small message of the rank, or an offer of a large one. */
int hvd_receiving_message(struct hvd_p2p *p2p, int rank,
                          const struct hvd_envelope *envelope, const void *payload);

/* The next piece of one that this rank has asked for. */
int hvd_receiving_piece(struct hvd_p2p *p2p, struct hvd_p2p_peer *peer,
                        const struct hvd_envelope *envelope, const void *payload);

/* Reads more of one where it is; true when all is here. */
bool hvd_receiving_go_on(struct hvd_p2p *p2p, struct hvd_transfer *transfer, bool *moved);

/* Forgets what waits. */
void hvd_receiving_drop(struct hvd_p2p *p2p);

#endif
