/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks tell each other when they start, before they connect: the card that the
 * bootstrap carries holds a stamp, and behind it the addresses of the control network. */
#ifndef HVD_CARD_H
#define HVD_CARD_H

#include <stddef.h>
#include <stdint.h>

#include "pmix_boot/boot.h"

struct hvd_control;

/* Of a rank that cannot read its table of algorithms. */
#define HVD_CARD_NO_ALGORITHMS UINT64_MAX

struct hvd_card_stamp {
    uint64_t algorithms; /* the digest of its table */
    int64_t memory_limit; /* bytes; 0: none */
};

/* Finds the other ranks, with this one's card: its stamp and the address of its control
 * network. The caller owns *boot. */
int hvd_card_boot(const struct hvd_card_stamp *stamp, const struct hvd_control *control,
                  struct hvd_boot_query *query, struct hvd_boot **boot,
                  struct hvd_error *err);

/* HVD_ERR_MISMATCH, with a text, when some card is none of this version. */
int hvd_card_check(const struct hvd_boot *boot, struct hvd_error *err);

/* Of cards that were checked. */
struct hvd_card_stamp hvd_card_of(const struct hvd_boot_peer *peer);
const void *hvd_card_address(const struct hvd_boot_peer *peer,
                             size_t *bytes); /* the peer's */

#endif
