/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of a rank's control sockets, as bytes of its card (boot.h). */
#ifndef HVD_CONTROL_CARD_H
#define HVD_CONTROL_CARD_H

#include <stddef.h>
#include <stdint.h>

#include "pmix_boot/wire/socket.h"

/* A node with more usable addresses publishes the most promising ones. */
#define HVD_CONTROL_CARD_ADDRESSES 16

struct hvd_control_card {
    uint16_t port;
    uint16_t count;
    char name[HVD_SOCKET_NAME_BYTES];
    struct hvd_ip addresses[HVD_CONTROL_CARD_ADDRESSES];
};

/* The card as it travels is its own first hvd_control_card_bytes() bytes. */
size_t hvd_control_card_bytes(const struct hvd_control_card *card);

/* Reads what came from another rank. Returns 0 or HVD_ERR_ARG. */
int hvd_control_card_parse(struct hvd_control_card *card, const void *data, size_t bytes);

#endif
