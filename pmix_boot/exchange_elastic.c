/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange of an elastic job: its service says who takes part. */
#include <stdio.h>
#include <stdlib.h>

#include "gpu_binding/base/env.h"
#include "pmix_boot/rendezvous/client.h"
#include "pmix_boot/exchange.h"

static int read_slot(void)
{
    const char *text = getenv(HVD_ENV_RANK);

    return text != NULL ? atoi(text) : 0;
}

/* The cards as blobs; the array of cards is freed. */
static int take_cards(struct hvd_rendezvous_generation *generation,
                      struct hvd_exchange *out, struct hvd_error *err)
{
    struct hvd_blob *blobs = calloc((size_t)generation->size, sizeof(*blobs));

    for (int rank = 0; rank < generation->size; rank++) {
        struct hvd_rendezvous_card *card = &generation->cards[rank];

        if (blobs != NULL) {
            blobs[rank] = (struct hvd_blob){card->data, card->bytes};
        } else {
            free(card->data);
        }
    }
    free(generation->cards);
    if (blobs == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the cards of %d ranks",
                        generation->size);
    }
    *out = (struct hvd_exchange){generation->rank, generation->size, blobs};
    return 0;
}

int hvd_exchange_elastic(const struct hvd_exchange_query *query, struct hvd_exchange *out,
                         struct hvd_error *err)
{
    struct hvd_rendezvous_generation generation;
    struct hvd_rank_record own;
    char host[256];
    int status = hvd_rank_record_read(&query->mine, -1, &own, err);
    struct hvd_rendezvous_client_query ask = {
        .address = getenv(HVD_ENV_ELASTIC),
        .slot = read_slot(),
        .host = host,
        .card = query->mine.data,
        .card_bytes = query->mine.bytes,
        .timeout_ms = query->timeout_ms,
    };

    if (status == 0 && query->ranks != NULL) {
        status = hvd_fail(err, HVD_ERR_UNSUPPORTED,
                          "an elastic job cannot be made of a list of ranks, since they "
                          "change: call init without one");
    }
    if (status < 0) {
        return status;
    }
    snprintf(host, sizeof(host), "%.*s", (int)own.host_length, own.node);
    status = hvd_rendezvous_client_join(&ask, &generation, err);
    return status < 0 ? status : take_cards(&generation, out, err);
}
