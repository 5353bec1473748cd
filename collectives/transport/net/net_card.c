/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes the addresses of a rank. */
#include "collectives/transport/net/net_card.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/hvd_status.h"

/* Start of an encoded card; the addresses follow without padding. */
struct front {
    uint32_t tcp_bytes;
    uint32_t ucx_bytes;
    uint32_t security;
    uint32_t has_aes;
};

static char *append_address(char *at, const struct hvd_net_address *address)
{
    if (address->bytes > 0) {
        memcpy(at, address->data, address->bytes);
    }
    return at + address->bytes;
}

int hvd_net_card_make(const struct hvd_net_card *card, void **out, size_t *bytes)
{
    const struct front front = {(uint32_t)card->tcp.bytes, (uint32_t)card->ucx.bytes,
                                card->security, card->has_aes};
    const size_t total = sizeof(front) + card->tcp.bytes + card->ucx.bytes;
    char *data = malloc(total);

    if (data == NULL) {
        return HVD_ERR_NOMEM;
    }
    memcpy(data, &front, sizeof(front));
    append_address(append_address(data + sizeof(front), &card->tcp), &card->ucx);
    *out = data;
    *bytes = total;
    return 0;
}

int hvd_net_card_read(const void *data, size_t bytes, struct hvd_net_card *card)
{
    const char *at = data;
    struct front front;

    if (bytes < sizeof(front)) {
        return HVD_ERR_MISMATCH;
    }
    memcpy(&front, at, sizeof(front));
    if ((uint64_t)front.tcp_bytes + front.ucx_bytes != bytes - sizeof(front)) {
        return HVD_ERR_MISMATCH;
    }
    card->security = front.security;
    card->has_aes = front.has_aes != 0;
    card->tcp = (struct hvd_net_address){at + sizeof(front), front.tcp_bytes};
    card->ucx =
        (struct hvd_net_address){at + sizeof(front) + front.tcp_bytes, front.ucx_bytes};
    return 0;
}
