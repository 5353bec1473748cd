/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank tells the others to be reached by. */
#include "collectives/transport/net/net_card.h"

#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/hvd_status.h"

/* In front; the addresses follow without padding. */
struct front {
    uint32_t network[2];
    uint32_t count;
};

int hvd_net_card_make(const struct hvd_net_host_addresses *hosts, const void *ucx,
                      size_t ucx_bytes, void **out, size_t *bytes)
{
    struct front front = {.count = (uint32_t)hosts->count};
    size_t list_bytes = hosts->count * sizeof(hosts->list[0]);
    char *card = malloc(sizeof(front) + list_bytes + ucx_bytes);

    if (card == NULL) {
        return HVD_ERR_NOMEM;
    }
    memcpy(front.network, &hosts->network, sizeof(front.network));
    memcpy(card, &front, sizeof(front));
    if (list_bytes > 0) {
        memcpy(card + sizeof(front), hosts->list, list_bytes);
    }
    memcpy(card + sizeof(front) + list_bytes, ucx, ucx_bytes);
    *out = card;
    *bytes = sizeof(front) + list_bytes + ucx_bytes;
    return 0;
}

int hvd_net_card_read(const void *card, size_t bytes,
                      struct hvd_net_host_addresses *hosts, const void **ucx)
{
    const char *at = card;
    struct front front;

    if (bytes < sizeof(front)) {
        return HVD_ERR_MISMATCH;
    }
    memcpy(&front, at, sizeof(front));
    if (front.count > (bytes - sizeof(front)) / sizeof(hosts->list[0])) {
        return HVD_ERR_MISMATCH;
    }
    memcpy(&hosts->network, front.network, sizeof(hosts->network));
    hosts->list = (struct hvd_net_host_address *)(uintptr_t)(at + sizeof(front));
    hosts->count = front.count;
    *ucx = at + sizeof(front) + front.count * sizeof(hosts->list[0]);
    return 0;
}
