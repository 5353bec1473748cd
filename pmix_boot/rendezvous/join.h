/* SPDX-License-Identifier: Apache-2.0 */
/* The question of a rank that wants to begin, and the service's answers. Pure, but for
 * the call. */
#ifndef HVD_RENDEZVOUS_JOIN_H
#define HVD_RENDEZVOUS_JOIN_H

#include <stddef.h>

#include "gpu_binding/base/error.h"
#include "pmix_boot/rendezvous/channel.h"

/* Borrowed for the call. */
struct hvd_rendezvous_join_query {
    const char *address; /* see address.h */
    int slot; /* the number that the launcher gave this process */
    const char *host;
    const void *card;
    size_t card_bytes;
    /* For reaching the service; in a static job also how long this rank waits for the
     * others. */
    int timeout_ms;
    int count; /* of the ranks that begin together; 0: the job is elastic */
    /* Of a static job: */
    const int *ranks; /* [count], of the launch; NULL: all */
    int index; /* among them */
};

struct hvd_rendezvous_card {
    void *data;
    size_t bytes;
};

struct hvd_rendezvous_generation {
    unsigned number; /* 1, 2, ...; 0: of a static job */
    int rank;
    int size;
    struct hvd_rendezvous_card *cards; /* [size], malloc'd one by one, as the array is */
};

/* Makes JOIN; the caller frees message->data. Returns 0 or HVD_ERR_NOMEM. */
int hvd_rendezvous_join_make(const struct hvd_rendezvous_join_query *query,
                             struct hvd_channel_message *message, struct hvd_error *err);

/* Reads FORMED or REFUSED. The caller owns generation->cards. Fails with HVD_ERR_NET or
 * HVD_ERR_NOMEM; refused, with the status of the service and its words in err. *culprit
 * is then the rank of the launch that has failed; -1: none is known. */
int hvd_rendezvous_join_read(const struct hvd_channel_message *answer,
                             struct hvd_rendezvous_generation *generation, int *culprit,
                             struct hvd_error *err);

/* Joins a static job, over a connection of its own: waits until all ranks that begin
 * together have done so. Fails as above, or with HVD_ERR_ARG for a bad address,
 * HVD_ERR_NET when the service cannot be reached or is gone, HVD_ERR_TIMEOUT when it says
 * nothing. */
int hvd_rendezvous_join_static(const struct hvd_rendezvous_join_query *query,
                               struct hvd_rendezvous_generation *generation, int *culprit,
                               struct hvd_error *err);

/* Frees cards[0 ... count - 1].data and the array; NULL is fine. */
void hvd_rendezvous_join_free(struct hvd_rendezvous_card *cards, int count);

#endif
