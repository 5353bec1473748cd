/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of a rank's sockets. */
#include "collectives/transport/connect/connect_card.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/env.h"

/* What a variable says; NULL: nothing. */
static const char *find(const char *variable)
{
    const char *text = getenv(variable);

    return text != NULL && text[0] != '\0' ? text : NULL;
}

static const char *chosen_interfaces(void)
{
    const char *names = find(HVD_ENV_IFACE);

    if (names == NULL) {
        names = find(HVD_ENV_GLOO_IFACE);
    }
    if (names == NULL) {
        names = find(HVD_ENV_UCX_NET_DEVICES);
        names = names != NULL && hvd_interfaces_are(names) ? names : NULL;
    }
    return names;
}

int hvd_connect_card_list(struct hvd_connect_card *card, struct hvd_error *err)
{
    int count = 0;
    int status = hvd_interfaces_list(chosen_interfaces(), card->addresses,
                                     HVD_CONNECT_CARD_ADDRESSES, &count, err);

    card->count = (uint16_t)count;
    return status;
}

size_t hvd_connect_card_bytes(const struct hvd_connect_card *card)
{
    return offsetof(struct hvd_connect_card, addresses) +
           card->count * sizeof(card->addresses[0]);
}

int hvd_connect_card_parse(struct hvd_connect_card *card, const void *data, size_t bytes)
{
    struct hvd_connect_card read = {0};

    if (bytes < offsetof(struct hvd_connect_card, addresses) || bytes > sizeof(read)) {
        return HVD_ERR_ARG;
    }
    memcpy(&read, data, bytes);
    if (read.count > HVD_CONNECT_CARD_ADDRESSES ||
        hvd_connect_card_bytes(&read) != bytes) {
        return HVD_ERR_ARG;
    }
    *card = read;
    return 0;
}
