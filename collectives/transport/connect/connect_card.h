/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of a rank's sockets, as bytes of its card (boot.h). */
#ifndef HVD_CONNECT_CARD_H
#define HVD_CONNECT_CARD_H

#include <stddef.h>
#include <stdint.h>

#include "pmix_boot/wire/socket.h"

/* A node with more usable addresses publishes the most promising ones. */
#define HVD_CONNECT_CARD_ADDRESSES HVD_SOCKET_ADDRESSES

struct hvd_connect_card {
    uint16_t port;
    uint16_t count;
    uint64_t network; /* the network namespace; 0: not known */
    uint64_t machine; /* that it is on, a hash of its boot id */
    char name[HVD_SOCKET_NAME_BYTES];
    struct hvd_ip addresses[HVD_CONNECT_CARD_ADDRESSES];
};

/* Fills in the addresses of this host, the most promising first: of the interfaces in
 * HVD_IFACE or HOROVOD_GLOO_IFACE, else of UCX_NET_DEVICES if those are names of
 * interfaces, else of all. HVD_ERR_ARG for an interface that does not exist or has no
 * address, HVD_ERR_SYS. Fills in network and machine, too. */
int hvd_connect_card_list(struct hvd_connect_card *card, struct hvd_error *err);

/* Takes the addresses out that lead back to this host, where somebody else may listen: of
 * docker0, virbr0 or a management controller, which many nodes have under the same
 * address. None if the card is of this very host. own: this rank's card. Returns how
 * many. */
int hvd_connect_card_drop_own(struct hvd_connect_card *card,
                              const struct hvd_connect_card *own,
                              const struct hvd_interfaces_own *addresses);

/* The card as it travels is its own first hvd_connect_card_bytes() bytes. */
size_t hvd_connect_card_bytes(const struct hvd_connect_card *card);

/* Reads what came from another rank. Returns 0 or HVD_ERR_ARG. */
int hvd_connect_card_parse(struct hvd_connect_card *card, const void *data, size_t bytes);

#endif
