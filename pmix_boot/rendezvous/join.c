/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/rendezvous/join.h"

#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu_binding/base/env.h"
#include "pmix_boot/rendezvous/call.h"
#include "pmix_boot/rendezvous/message.h"
#include "pmix_boot/rendezvous/process_start.h"

/* The service itself refuses a rank when the rank's time limit has passed. If it does not
 * answer this long after the limit, it hangs. */
static const int hang_ms = 15000;

/* How often to ask again if the connection breaks, and how long to try to reach the
 * service then: if it does not listen any more, it has ended. */
static const int most_repeats = 3;
static const int repeat_ms = 10000;

/* --- the question --- */

static struct hvd_rendezvous_process describe_process(void)
{
    const char *job = getenv(HVD_ENV_SLURM_JOB);
    const char *node = getenv(HVD_ENV_SLURM_NODE);
    struct hvd_rendezvous_process process = {
        .pid = getpid(), .started = hvd_rendezvous_process_start(getpid())};

    if (job != NULL && node != NULL) {
        process.job = (uint32_t)strtoul(job, NULL, 10);
        snprintf(process.node, sizeof(process.node), "%s", node);
    }
    return process;
}

static uint64_t draw_number(void)
{
    uint64_t number;

    randombytes_buf(&number, sizeof(number));
    return number;
}

int hvd_rendezvous_join_make(const struct hvd_rendezvous_join_query *query,
                             struct hvd_channel_message *message, struct hvd_error *err)
{
    struct hvd_rendezvous_join head = {
        .card_bytes = query->card_bytes,
        .number = draw_number(),
        .host_bytes = (uint32_t)strlen(query->host),
        .slot = query->slot,
        .count = query->count,
        .listed = query->ranks != NULL ? query->count : 0,
        .index = query->index,
        .timeout_ms = query->timeout_ms,
        .process = describe_process(),
    };
    const size_t list_bytes = (size_t)head.listed * sizeof(int32_t);
    const size_t bytes = sizeof(head) + list_bytes + head.host_bytes + query->card_bytes;
    char *data = malloc(bytes);

    if (data == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for this rank's card");
    }
    *message = (struct hvd_channel_message){HVD_RENDEZVOUS_JOIN, data, bytes};
    memcpy(data, &head, sizeof(head));
    data += sizeof(head);
    if (list_bytes > 0) {
        memcpy(data, query->ranks, list_bytes);
    }
    memcpy(data + list_bytes, query->host, head.host_bytes);
    memcpy(data + list_bytes + head.host_bytes, query->card, query->card_bytes);
    return 0;
}

/* --- the answer --- */

void hvd_rendezvous_join_free(struct hvd_rendezvous_card *cards, int count)
{
    for (int i = 0; cards != NULL && i < count; i++) {
        free(cards[i].data);
    }
    free(cards);
}

static int take_cards(const char *data, size_t bytes, struct hvd_rendezvous_card *cards,
                      int size)
{
    for (int i = 0; i < size; i++) {
        uint64_t card_bytes;

        if (bytes < sizeof(card_bytes)) {
            return HVD_ERR_NET;
        }
        memcpy(&card_bytes, data, sizeof(card_bytes));
        data += sizeof(card_bytes);
        bytes -= sizeof(card_bytes);
        if (bytes < card_bytes) {
            return HVD_ERR_NET;
        }
        cards[i].data = malloc(card_bytes > 0 ? card_bytes : 1);
        if (cards[i].data == NULL) {
            return HVD_ERR_NOMEM;
        }
        memcpy(cards[i].data, data, card_bytes);
        cards[i].bytes = card_bytes;
        data += card_bytes;
        bytes -= card_bytes;
    }
    return 0;
}

/* Returns whether this rank belongs to the generation, and the message has room for all
 * cards. */
static bool is_possible(const struct hvd_rendezvous_formed *head, size_t bytes)
{
    return head->rank >= 0 && head->rank < head->size &&
           (size_t)head->size <= (bytes - sizeof(*head)) / sizeof(uint64_t);
}

static int read_formed(const struct hvd_channel_message *message,
                       struct hvd_rendezvous_generation *generation,
                       struct hvd_error *err)
{
    struct hvd_rendezvous_formed head = {0};
    struct hvd_rendezvous_card *cards;
    int status;

    if (message->bytes >= sizeof(head)) {
        memcpy(&head, message->data, sizeof(head));
    }
    if (message->bytes < sizeof(head) || !is_possible(&head, message->bytes)) {
        return hvd_fail(
            err, HVD_ERR_NET,
            "the rendezvous service answers rank %d of %d in %zu bytes, which "
            "is impossible: does it run the same version of hvd?",
            (int)head.rank, (int)head.size, message->bytes);
    }
    cards = calloc((size_t)head.size, sizeof(*cards));
    status = cards != NULL ? take_cards((const char *)message->data + sizeof(head),
                                        message->bytes - sizeof(head), cards, head.size)
                           : HVD_ERR_NOMEM;
    if (status < 0) {
        hvd_rendezvous_join_free(cards, head.size);
        return hvd_fail(err, status, "no memory for the cards of %d ranks", head.size);
    }
    *generation =
        (struct hvd_rendezvous_generation){head.generation, head.rank, head.size, cards};
    return 0;
}

static int read_refused(const struct hvd_channel_message *message, int *culprit,
                        struct hvd_error *err)
{
    struct hvd_rendezvous_refused head = {.status = HVD_ERR_STATE};
    int length = (int)(message->bytes - sizeof(head));

    if (message->bytes < sizeof(head)) {
        return hvd_fail(err, HVD_ERR_STATE, "the rendezvous service rejected this rank");
    }
    memcpy(&head, message->data, sizeof(head));
    *culprit = head.culprit;
    return hvd_fail(err, head.status < 0 ? head.status : HVD_ERR_STATE, "%.*s", length,
                    (const char *)message->data + sizeof(head));
}

int hvd_rendezvous_join_read(const struct hvd_channel_message *answer,
                             struct hvd_rendezvous_generation *generation, int *culprit,
                             struct hvd_error *err)
{
    *culprit = -1;
    switch (answer->type) {
    case HVD_RENDEZVOUS_FORMED:
        return read_formed(answer, generation, err);
    case HVD_RENDEZVOUS_REFUSED:
        return read_refused(answer, culprit, err);
    default:
        return hvd_fail(err, HVD_ERR_NET,
                        "the rendezvous service answers with message %u of %zu bytes: "
                        "does it run the same version of hvd?",
                        (unsigned)answer->type, answer->bytes);
    }
}

/* --- a static job --- */

/* Asks over a connection of its own. If that breaks, asks again over another one; if none
 * can be had, *err tells why the first one has ended. The caller ends *call. */
static int ask(const struct hvd_rendezvous_join_query *query,
               const struct hvd_channel_message *question,
               struct hvd_rendezvous_call **call, struct hvd_channel_message *answer,
               struct hvd_error *err)
{
    const int most_ms =
        query->timeout_ms < INT_MAX - hang_ms ? query->timeout_ms + hang_ms : INT_MAX;
    int status = hvd_rendezvous_call_begin(query->address, query->timeout_ms, call, err);

    if (status < 0) {
        return status;
    }
    status = hvd_rendezvous_call_ask(*call, question, most_ms, answer, err);
    for (int i = 0; i < most_repeats && status == HVD_ERR_NET; i++) {
        struct hvd_rendezvous_call *next = NULL;

        if (hvd_rendezvous_call_begin(query->address, repeat_ms, &next, NULL) < 0) {
            break;
        }
        hvd_rendezvous_call_end(*call);
        *call = next;
        status = hvd_rendezvous_call_ask(*call, question, most_ms, answer, err);
    }
    return status;
}

int hvd_rendezvous_join_static(const struct hvd_rendezvous_join_query *query,
                               struct hvd_rendezvous_generation *generation, int *culprit,
                               struct hvd_error *err)
{
    struct hvd_rendezvous_call *call = NULL;
    struct hvd_channel_message question = {0};
    struct hvd_channel_message answer;
    int status = hvd_rendezvous_join_make(query, &question, err);

    *culprit = -1;
    if (status < 0) {
        return status;
    }
    status = ask(query, &question, &call, &answer, err);
    free((void *)question.data);
    if (status == 0) {
        status = hvd_rendezvous_join_read(&answer, generation, culprit, err);
    }
    hvd_rendezvous_call_end(call);
    return status;
}
