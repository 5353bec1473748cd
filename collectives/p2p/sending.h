/* SPDX-License-Identifier: Apache-2.0 */
/* Sends messages: small ones at once, large ones by an offer, in pieces if the receiver
 * asks for them.
 *
 * Functions that return int return 0 or the failure of the job. */
#ifndef HVD_SENDING_H
#define HVD_SENDING_H

#include <stdbool.h>
#include <stdint.h>

struct hvd_entry;
struct hvd_envelope;
struct hvd_p2p_peer;
struct hvd_p2p;
struct hvd_transfer;

int hvd_sending_start(struct hvd_p2p *p2p, struct hvd_entry *entry, int64_t now_ns);

/* Handles a peer's answer to an offer. */
int hvd_sending_answered(struct hvd_p2p *p2p, struct hvd_p2p_peer *peer,
                         const struct hvd_envelope *envelope);

/* Sends pieces while there is room; returns true once all have been sent. */
bool hvd_sending_go_on(struct hvd_p2p *p2p, struct hvd_transfer *transfer, bool *moved);

#endif
