/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of a rank's sockets, as part of the rank's card (boot.h). */
#ifndef HVD_CONNECT_CARD_H
#define HVD_CONNECT_CARD_H

#include <stddef.h>
#include <stdint.h>

#include "pmix_boot/sock/socket.h"

/* The largest number of addresses in a card. A node that has more of them publishes the
 * most promising ones. */
#define HVD_CONNECT_CARD_ADDRESSES HVD_SOCKET_ADDRESSES

struct hvd_connect_card {
    uint16_t port;
    uint16_t count;
    uint64_t network; /* the network namespace; 0 if unknown */
    uint64_t machine; /* a hash of the boot id of the machine */
    char name[HVD_SOCKET_NAME_BYTES];
    struct hvd_ip addresses[HVD_CONNECT_CARD_ADDRESSES];
};

/* Fills in the addresses of this host, the most promising first, and the members
 * `network` and `machine`. The interfaces are those in HVD_IFACE or HOROVOD_GLOO_IFACE,
 * else those in UCX_NET_DEVICES if it names interfaces, else all. Returns HVD_ERR_ARG for
 * an interface that does not exist or has no address, or HVD_ERR_SYS. */
int hvd_connect_card_list(struct hvd_connect_card *card, struct hvd_error *err);

/* Removes addresses that lead back to this host, where another process may listen:
 * docker0, virbr0 or a management controller have the same address on many nodes. Removes
 * none if the card belongs to this host. own: the card of this rank. Returns the number
 * of addresses removed. */
int hvd_connect_card_drop_own(struct hvd_connect_card *card,
                              const struct hvd_connect_card *own,
                              const struct hvd_interfaces_own *addresses);

/* Returns the number of bytes to send: a card is sent as its first
 * hvd_connect_card_bytes() bytes. */
size_t hvd_connect_card_bytes(const struct hvd_connect_card *card);

/* Decodes a card received from another rank. Returns 0 or HVD_ERR_ARG. */
int hvd_connect_card_parse(struct hvd_connect_card *card, const void *data, size_t bytes);

#endif
