/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank tells the others to be reached by: its address of each carrier that it has. */
#ifndef HVD_NET_CARD_H
#define HVD_NET_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hvd_net_address {
    const void *data;
    size_t bytes; /* 0: it has no such carrier */
};

struct hvd_net_card {
    struct hvd_net_address tcp;
    struct hvd_net_address ucx;
    uint32_t security; /* enum hvd_net_security, as the user of this rank wants it */
    bool has_aes; /* hvd_net_seal_has_aes */
};

/* *out, from malloc, holds the addresses. Returns 0 or HVD_ERR_NOMEM. */
int hvd_net_card_make(const struct hvd_net_card *card, void **out, size_t *bytes);

/* The addresses in what came from another rank, borrowed. Returns 0 or HVD_ERR_MISMATCH. */
int hvd_net_card_read(const void *data, size_t bytes, struct hvd_net_card *card);

#endif
