/* SPDX-License-Identifier: Apache-2.0 */
/* The card that ranks exchange when they start, before they connect: a stamp, followed by
 * the addresses of the control network. The bootstrap carries it. */
#ifndef HVD_CARD_H
#define HVD_CARD_H

#include <stddef.h>
#include <stdint.h>

#include "pmix_boot/boot.h"

struct hvd_control;

/* The digest in the card of a rank that cannot read its table of algorithms. */
#define HVD_CARD_NO_ALGORITHMS UINT64_MAX

struct hvd_card_stamp {
    uint64_t algorithms; /* the digest of the rank's table of algorithms */
    int64_t memory_limit; /* bytes; 0: none */
    int64_t pid; /* as the rank sees it: in a container, in its namespace */
};

/* Finds the other ranks, and hands in this rank's card: its stamp and the address of its
 * control network. The caller owns *boot. */
int hvd_card_boot(const struct hvd_card_stamp *stamp, const struct hvd_control *control,
                  struct hvd_boot_query *query, struct hvd_boot **boot,
                  struct hvd_error *err);

/* Returns HVD_ERR_MISMATCH, with a text, if the card of any rank is from another version
 * of hvd. */
int hvd_card_check(const struct hvd_boot *boot, struct hvd_error *err);

/* Return the stamp, its pid, and the control address of a card that was checked. The
 * address is borrowed from the peer. */
struct hvd_card_stamp hvd_card_of(const struct hvd_boot_peer *peer);
int hvd_card_pid(const struct hvd_boot_peer *peer);
const void *hvd_card_address(const struct hvd_boot_peer *peer, size_t *bytes);

#endif
