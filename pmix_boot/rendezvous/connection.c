/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/rendezvous/connection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/error.h"

/* After greeting, a rank may take long to prove that it has the key, on a busy or
 * swapping node. If the connection is closed meanwhile, the rank must connect again. The
 * number of strangers that know the greeting is limited. */
static const int64_t proof_ms = 60000;

void hvd_connection_finish(struct hvd_connection *connection)
{
    hvd_channel_destroy(connection->channel);
    free(connection->card);
}

int hvd_connection_take_card(struct hvd_connection *connection, const char *data,
                             size_t bytes, uint32_t host_bytes, uint64_t card_bytes)
{
    void *card;

    if (host_bytes >= sizeof(connection->host) || bytes < host_bytes ||
        bytes - host_bytes != card_bytes) {
        return HVD_ERR_NET;
    }
    card = malloc(card_bytes + 1);
    if (card == NULL) {
        return HVD_ERR_NOMEM;
    }
    memcpy(card, data + host_bytes, card_bytes);
    free(connection->card);
    connection->card = card;
    connection->card_bytes = card_bytes;
    snprintf(connection->host, sizeof(connection->host), "%.*s", (int)host_bytes, data);
    return 0;
}

bool hvd_connection_is_late(const struct hvd_connection *connection, int64_t now_ms)
{
    const int64_t limit_ms = hvd_channel_has_begun(connection->channel)
                                 ? proof_ms
                                 : HVD_CONNECTION_GREETING_MS;

    return !connection->is_proven && now_ms - connection->since_ms > limit_ms;
}

struct hvd_connection *hvd_connection_least_stranger(struct hvd_connection *connections,
                                                     size_t count, size_t *strangers)
{
    struct hvd_connection *least = NULL;

    *strangers = 0;
    for (size_t i = 0; i < count; i++) {
        struct hvd_connection *one = &connections[i];
        bool has_begun = hvd_channel_has_begun(one->channel);
        bool is_less;

        if (one->is_proven) {
            continue;
        }
        *strangers += 1;
        is_less = least == NULL || has_begun < hvd_channel_has_begun(least->channel) ||
                  (has_begun == hvd_channel_has_begun(least->channel) &&
                   one->number < least->number);
        least = is_less ? one : least;
    }
    return least;
}
