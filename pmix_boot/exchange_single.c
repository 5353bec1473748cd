/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange of a process that is alone, and what all exchanges share. */
#include "pmix_boot/exchange.h"

#include <stdlib.h>
#include <string.h>

int hvd_exchange_single(const struct hvd_blob *mine, struct hvd_exchange *out,
                        struct hvd_error *err)
{
    struct hvd_blob *blobs = calloc(1, sizeof(*blobs));
    void *copy = malloc(mine->bytes);

    if (blobs == NULL || copy == NULL) {
        free(blobs);
        free(copy);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for a card of %zu bytes",
                        mine->bytes);
    }
    memcpy(copy, mine->data, mine->bytes);
    blobs[0] = (struct hvd_blob){copy, mine->bytes};
    *out = (struct hvd_exchange){.rank = 0, .size = 1, .blobs = blobs};
    return 0;
}

void hvd_blobs_free(struct hvd_blob *blobs, int size)
{
    for (int rank = 0; blobs != NULL && rank < size; rank++) {
        free(blobs[rank].data);
    }
    free(blobs);
}

void hvd_exchange_finish(struct hvd_exchange *exchange)
{
    hvd_blobs_free(exchange->blobs, exchange->size);
    *exchange = (struct hvd_exchange){0};
}
