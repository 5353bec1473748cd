/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank tells the others to be reached by: its host's addresses, and UCX's own word.
 *
 *   | network (8) | number of addresses (4) | addresses (16 each) | UCX's */
#ifndef HVD_NET_CARD_H
#define HVD_NET_CARD_H

#include "collectives/transport/net/net_filter.h"

/* The caller frees *out. Returns 0 or HVD_ERR_NOMEM. */
int hvd_net_card_make(const struct hvd_net_host_addresses *hosts, const void *ucx,
                      size_t ucx_bytes, void **out, size_t *bytes);

/* Borrows all from the card. Returns 0, or HVD_ERR_MISMATCH when it is none. */
int hvd_net_card_read(const void *card, size_t bytes,
                      struct hvd_net_host_addresses *hosts, const void **ucx);

#endif
