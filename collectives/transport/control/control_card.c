/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of a rank's control sockets. */
#include "collectives/transport/control/control_card.h"

#include <stddef.h>
#include <string.h>

size_t hvd_control_card_bytes(const struct hvd_control_card *card)
{
    return offsetof(struct hvd_control_card, addresses) +
           card->count * sizeof(card->addresses[0]);
}

int hvd_control_card_parse(struct hvd_control_card *card, const void *data, size_t bytes)
{
    struct hvd_control_card read = {0};

    if (bytes < offsetof(struct hvd_control_card, addresses) || bytes > sizeof(read)) {
        return HVD_ERR_ARG;
    }
    memcpy(&read, data, bytes);
    if (read.count > HVD_CONTROL_CARD_ADDRESSES ||
        hvd_control_card_bytes(&read) != bytes) {
        return HVD_ERR_ARG;
    }
    *card = read;
    return 0;
}
