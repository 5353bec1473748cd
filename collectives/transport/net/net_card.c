/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank tells the others to be reached by. */
#include "collectives/transport/net/net_card.h"

#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/hvd_status.h"

int hvd_net_card_make(const struct hvd_net_host_addresses *hosts, const void *ucx,
                      size_t ucx_bytes, void **out, size_t *bytes)
{
    uint32_t count = (uint32_t)hosts->count;
    size_t list_bytes = count * sizeof(hosts->list[0]);
    char *card = malloc(sizeof(count) + list_bytes + ucx_bytes);

    if (card == NULL) {
        return HVD_ERR_NOMEM;
    }
    memcpy(card, &count, sizeof(count));
    if (count > 0) {
        memcpy(card + sizeof(count), hosts->list, list_bytes);
    }
    memcpy(card + sizeof(count) + list_bytes, ucx, ucx_bytes);
    *out = card;
    *bytes = sizeof(count) + list_bytes + ucx_bytes;
    return 0;
}

int hvd_net_card_read(const void *card, size_t bytes,
                      struct hvd_net_host_addresses *hosts, const void **ucx)
{
    const char *at = card;
    uint32_t count;

    if (bytes < sizeof(count)) {
        return HVD_ERR_MISMATCH;
    }
    memcpy(&count, at, sizeof(count));
    if (count > (bytes - sizeof(count)) / sizeof(hosts->list[0])) {
        return HVD_ERR_MISMATCH;
    }
    hosts->list = (struct hvd_net_host_address *)(uintptr_t)(at + sizeof(count));
    hosts->count = count;
    *ucx = at + sizeof(count) + count * sizeof(hosts->list[0]);
    return 0;
}
