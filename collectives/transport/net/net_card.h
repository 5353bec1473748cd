/* SPDX-License-Identifier: Apache-2.0 */
/* The card of a rank: the rank's address in each transport that it has, for other ranks
 * to connect to. */
#ifndef HVD_NET_CARD_H
#define HVD_NET_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hvd_net_address {
    const void *data;
    size_t bytes; /* 0 if the rank lacks this transport */
};

struct hvd_net_card {
    struct hvd_net_address tcp;
    struct hvd_net_address ucx;
    /* an enum hvd_net_security: HVD_NET_SECURITY on this rank */
    uint32_t security;
    bool has_aes; /* result of hvd_net_seal_has_aes */
};

/* Encodes the card into *out, which the caller frees. Returns 0 or HVD_ERR_NOMEM. */
int hvd_net_card_make(const struct hvd_net_card *card, void **out, size_t *bytes);

/* Decodes a card received from another rank; the addresses point into data. Returns 0 or
 * HVD_ERR_MISMATCH. */
int hvd_net_card_read(const void *data, size_t bytes, struct hvd_net_card *card);

#endif
