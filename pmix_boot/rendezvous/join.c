/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/rendezvous/join.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pmix_boot/rendezvous/message.h"

void hvd_rendezvous_answer_free(struct hvd_rendezvous_card *cards, int count)
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

/* Whether this rank is one of the generation, and its message has room for all cards. */
static bool is_possible(const struct hvd_rendezvous_formed *head, size_t bytes)
{
    return head->rank >= 0 && head->rank < head->size &&
           (size_t)head->size <= (bytes - sizeof(*head)) / sizeof(uint64_t);
}

int hvd_rendezvous_answer_formed(const struct hvd_channel_message *message,
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
            "cannot be: does it run the same version of hvd?",
            (int)head.rank, (int)head.size, message->bytes);
    }
    cards = calloc((size_t)head.size, sizeof(*cards));
    status = cards != NULL ? take_cards((const char *)message->data + sizeof(head),
                                        message->bytes - sizeof(head), cards, head.size)
                           : HVD_ERR_NOMEM;
    if (status < 0) {
        hvd_rendezvous_answer_free(cards, head.size);
        return hvd_fail(err, status, "no memory for the cards of %d ranks", head.size);
    }
    *generation =
        (struct hvd_rendezvous_generation){head.generation, head.rank, head.size, cards};
    return 0;
}

int hvd_rendezvous_answer_refused(const struct hvd_channel_message *message, int *culprit,
                                  struct hvd_error *err)
{
    struct hvd_rendezvous_refused head = {.status = HVD_ERR_STATE};
    int length = (int)(message->bytes - sizeof(head));

    *culprit = -1;
    if (message->bytes < sizeof(head)) {
        return hvd_fail(err, HVD_ERR_STATE, "the rendezvous service refused this rank");
    }
    memcpy(&head, message->data, sizeof(head));
    *culprit = head.culprit;
    return hvd_fail(err, head.status < 0 ? head.status : HVD_ERR_STATE, "%.*s", length,
                    (const char *)message->data + sizeof(head));
}
