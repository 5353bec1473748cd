/* SPDX-License-Identifier: Apache-2.0 */
/* The exchanges through hvd's rendezvous service: that of an elastic job, in which the service says
 * who takes part, and that of a static one, in which the launcher does. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/env.h"
#include "pmix_boot/cause.h"
#include "pmix_boot/exchange.h"
#include "pmix_boot/exchange_key.h"
#include "pmix_boot/rendezvous/call.h"
#include "pmix_boot/rendezvous/client.h"
#include "pmix_boot/rendezvous/message.h"

/* The service keeps the time limit; one that says nothing for so much longer hangs. */
static const int hang_ms = 15000;

/* The place of this rank. */
struct place {
    int rank; /* of the launch */
    int index; /* in the list, if there is one */
    int count; /* of the ranks that take part */
};

/* HVD_ERR_ARG when the variable is no number from 0 on. */
static int read_number(const char *name, int *out)
{
    const char *text = getenv(name);
    char *end = NULL;
    long number = text != NULL ? strtol(text, &end, 10) : -1;

    if (text == NULL || end == text || *end != '\0' || number < 0 || number > INT_MAX) {
        return HVD_ERR_ARG;
    }
    *out = (int)number;
    return 0;
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

static int read_host(const struct hvd_exchange_query *query, char *host, size_t bytes,
                     struct hvd_error *err)
{
    struct hvd_rank_record own;
    int status = hvd_rank_record_read(&query->mine, -1, &own, err);

    if (status == 0) {
        snprintf(host, bytes, "%.*s", (int)own.host_length, own.node);
    }
    return status;
}

/* --- an elastic job ----------------------------------------------------------------------- */

int hvd_exchange_elastic(const struct hvd_exchange_query *query, struct hvd_exchange *out,
                         struct hvd_error *err)
{
    struct hvd_rendezvous_generation generation = {0};
    char host[256];
    int status = read_host(query, host, sizeof(host), err);
    struct hvd_rendezvous_client_query ask = {
        .address = getenv(HVD_ENV_RENDEZVOUS),
        .host = host,
        .card = query->mine.data,
        .card_bytes = query->mine.bytes,
        .timeout_ms = query->timeout_ms,
    };

    (void)read_number(HVD_ENV_RANK, &ask.slot);
    if (status == 0 && query->ranks != NULL) {
        status = hvd_fail(err, HVD_ERR_UNSUPPORTED,
                          "an elastic job cannot be made of a list of ranks, since they "
                          "change: call init without one");
    }
    if (status == 0) {
        status = hvd_rendezvous_client_join(&ask, &generation, err);
    }
    return status < 0 ? status : take_cards(&generation, out, err);
}

/* --- a static job ------------------------------------------------------------------------- */

/* Finds this rank in the list; the list must fit the launch. */
static int find_in_list(const struct hvd_exchange_query *query, int launched,
                        struct place *place, struct hvd_error *err)
{
    place->index = -1;
    for (int i = 0; i < query->count; i++) {
        if (query->ranks[i] >= launched) {
            return hvd_fail(err, HVD_ERR_ARG,
                            "there is no rank %d: the launcher started %d ranks",
                            query->ranks[i], launched);
        }
        if (query->ranks[i] == place->rank) {
            place->index = i;
        }
    }
    if (place->index < 0) {
        return hvd_fail(
            err, HVD_ERR_ARG,
            "rank %d is not in the list of %d ranks that it passed to init: only "
            "the ranks in the list may call init with it",
            place->rank, query->count);
    }
    place->count = query->count;
    return 0;
}

static int find_place(const struct hvd_exchange_query *query, struct place *place,
                      struct hvd_error *err)
{
    int launched = 0;

    if (read_number(HVD_ENV_RANK, &place->rank) < 0 ||
        read_number(HVD_ENV_SIZE, &launched) < 0 || place->rank >= launched) {
        const char *rank = getenv(HVD_ENV_RANK);
        const char *size = getenv(HVD_ENV_SIZE);

        return hvd_fail(err, HVD_ERR_STATE,
                        HVD_ENV_RENDEZVOUS
                        " is set, but " HVD_ENV_RANK "=%s and " HVD_ENV_SIZE
                        "=%s are no rank of a job: do not set them by hand",
                        rank != NULL ? rank : "", size != NULL ? size : "");
    }
    if (query->ranks != NULL) {
        return find_in_list(query, launched, place, err);
    }
    place->index = place->rank;
    place->count = launched;
    return 0;
}

/* The caller frees question->data. */
static int make_question(const struct hvd_exchange_query *query,
                         const struct place *place, const struct hvd_exchange_key *key,
                         struct hvd_channel_message *question, struct hvd_error *err)
{
    char host[256] = "";
    struct hvd_rendezvous_exchange head = {
        .list = key->list,
        .card_bytes = query->mine.bytes,
        .number = key->number,
        .rank = place->rank,
        .index = place->index,
        .count = place->count,
        .listed = query->ranks != NULL ? place->count : 0,
        .timeout_ms = query->timeout_ms,
    };
    const size_t list_bytes = (size_t)head.listed * sizeof(int32_t);
    int status = read_host(query, host, sizeof(host), err);
    char *data;

    if (status < 0) {
        return status;
    }
    head.host_bytes = (uint32_t)strlen(host);
    question->type = HVD_RENDEZVOUS_EXCHANGE;
    question->bytes = sizeof(head) + list_bytes + head.host_bytes + query->mine.bytes;
    question->data = data = malloc(question->bytes);
    if (data == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for this rank's card");
    }
    memcpy(data, &head, sizeof(head));
    data += sizeof(head);
    if (list_bytes > 0) {
        memcpy(data, query->ranks, list_bytes);
    }
    memcpy(data + list_bytes, host, head.host_bytes);
    memcpy(data + list_bytes + head.host_bytes, query->mine.data, query->mine.bytes);
    return 0;
}

/* hvdrun hears whose failure it is, unless it is this rank's own. */
static int take_refusal(const struct hvd_channel_message *answer,
                        const struct place *place, struct hvd_error *err)
{
    int culprit;
    int status = hvd_rendezvous_answer_refused(answer, &culprit, err);

    if (culprit >= 0 && culprit != place->rank) {
        hvd_cause_tell(culprit, place->rank, err->text);
    }
    return status;
}

static int read_answer(const struct hvd_channel_message *answer,
                       const struct place *place, struct hvd_exchange *out,
                       struct hvd_error *err)
{
    struct hvd_rendezvous_generation generation;
    int status;

    if (answer->type != HVD_RENDEZVOUS_FORMED) {
        return take_refusal(answer, place, err);
    }
    status = hvd_rendezvous_answer_formed(answer, &generation, err);
    if (status == 0) {
        status = take_cards(&generation, out, err);
    }
    if (status == 0 && (out->size != place->count || out->rank != place->index)) {
        hvd_fail(err, HVD_ERR_NET,
                 "the rendezvous service takes rank %d of %d for rank %d of %d",
                 place->index, place->count, out->rank, out->size);
        hvd_exchange_finish(out);
        return HVD_ERR_NET;
    }
    return status;
}

int hvd_exchange_rendezvous(const struct hvd_exchange_query *query,
                            struct hvd_exchange *out, struct hvd_error *err)
{
    const char *address = getenv(HVD_ENV_RENDEZVOUS);
    struct hvd_rendezvous_call *call = NULL;
    struct hvd_channel_message question = {0};
    struct hvd_channel_message answer;
    struct hvd_exchange_key key;
    struct place place = {0};
    int status = find_place(query, &place, err);

    if (status == 0) {
        status = hvd_exchange_key_next(query->ranks, query->count, &key, err);
    }
    if (status == 0) {
        status = make_question(query, &place, &key, &question, err);
    }
    if (status == 0) {
        status = hvd_rendezvous_call_begin(address, query->timeout_ms, &call, err);
    }
    if (status == 0) {
        status = hvd_rendezvous_call_ask(call, &question, query->timeout_ms + hang_ms,
                                         &answer, err);
    }
    if (status == 0) {
        status = read_answer(&answer, &place, out, err);
    }
    free((void *)question.data);
    hvd_rendezvous_call_end(call);
    return status;
}
