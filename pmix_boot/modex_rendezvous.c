/* SPDX-License-Identifier: Apache-2.0 */
/* The modex through hvd's rendezvous service: in an elastic job the service decides which
 * ranks take part, in a static one the launcher. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/env.h"
#include "gpu_binding/base/number.h"
#include "pmix_boot/cause.h"
#include "pmix_boot/modex.h"
#include "pmix_boot/rendezvous/client.h"

/* Turns the cards into blobs and frees the array of cards. */
static int take_cards(struct hvd_rendezvous_generation *generation, struct hvd_modex *out,
                      struct hvd_error *err)
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
    *out = (struct hvd_modex){generation->rank, generation->size, blobs,
                              (int)generation->number};
    return 0;
}

/* Fills in the part of the query that both kinds of jobs need. `host` gets the host name
 * from the rank's own record. */
static int describe_rank(const struct hvd_modex_query *query,
                         struct hvd_rendezvous_join_query *join, char *host, size_t bytes,
                         struct hvd_error *err)
{
    struct hvd_rank_record own;
    int status = hvd_rank_record_read(&query->mine, -1, &own, err);

    if (status < 0) {
        return status;
    }
    snprintf(host, bytes, "%.*s", (int)own.host_length, own.node);
    *join = (struct hvd_rendezvous_join_query){
        .address = getenv(HVD_ENV_RENDEZVOUS),
        .host = host,
        .card = query->mine.data,
        .card_bytes = query->mine.bytes,
        .timeout_ms = query->timeout_ms,
    };
    return 0;
}

/* --- an elastic job --- */

int hvd_modex_elastic(const struct hvd_modex_query *query, struct hvd_modex *out,
                      struct hvd_error *err)
{
    struct hvd_rendezvous_generation generation = {0};
    struct hvd_rendezvous_join_query join;
    char host[256];
    int status = describe_rank(query, &join, host, sizeof(host), err);

    if (status < 0) {
        return status;
    }
    if (query->ranks != NULL) {
        return hvd_fail(err, HVD_ERR_UNSUPPORTED,
                        "an elastic job cannot use a list of ranks, because its ranks "
                        "change: call init without one");
    }
    join.slot = hvd_number_of_variable(HVD_ENV_RANK);
    if (join.slot < 0) {
        join.slot = 0;
    }
    status = hvd_rendezvous_client_join(&join, &generation, err);
    return status < 0 ? status : take_cards(&generation, out, err);
}

/* --- a static job --- */

static int find_place(const struct hvd_modex_query *query,
                      struct hvd_rendezvous_join_query *join, struct hvd_error *err)
{
    const int launched = hvd_number_of_variable(HVD_ENV_SIZE);

    join->slot = hvd_number_of_variable(HVD_ENV_RANK);
    if (join->slot < 0 || join->slot >= launched) {
        const char *rank = getenv(HVD_ENV_RANK);
        const char *size = getenv(HVD_ENV_SIZE);

        return hvd_fail(err, HVD_ERR_STATE,
                        HVD_ENV_RENDEZVOUS
                        " is set, but " HVD_ENV_RANK "=%s and " HVD_ENV_SIZE
                        "=%s are not a rank of a job: do not set them by hand",
                        rank != NULL ? rank : "", size != NULL ? size : "");
    }
    join->ranks = query->ranks;
    return hvd_modex_position(query, join->slot, launched, &join->index, &join->count,
                              err);
}

static int check_place(const struct hvd_rendezvous_join_query *join,
                       struct hvd_modex *out, struct hvd_error *err)
{
    if (out->size == join->count && out->rank == join->index) {
        return 0;
    }
    hvd_fail(err, HVD_ERR_NET,
             "the rendezvous service treats rank %d of %d as rank %d of %d", join->index,
             join->count, out->rank, out->size);
    hvd_modex_finish(out);
    return HVD_ERR_NET;
}

int hvd_modex_rendezvous(const struct hvd_modex_query *query, struct hvd_modex *out,
                         struct hvd_error *err)
{
    struct hvd_rendezvous_generation generation = {0};
    struct hvd_rendezvous_join_query join;
    char host[256];
    int culprit;
    int status = describe_rank(query, &join, host, sizeof(host), err);

    if (status == 0) {
        status = find_place(query, &join, err);
    }
    if (status < 0) {
        return status;
    }
    status = hvd_rendezvous_join_static(&join, &generation, &culprit, err);
    if (status < 0 && culprit >= 0 && culprit != join.slot) {
        /* Tell hvdrun which rank is to blame, unless it is this rank. */
        hvd_cause_tell(culprit, join.slot, err->text);
    }
    if (status == 0) {
        status = take_cards(&generation, out, err);
    }
    return status < 0 ? status : check_place(&join, out, err);
}
