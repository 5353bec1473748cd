/* SPDX-License-Identifier: Apache-2.0 */
/* The question of a rank that wants to begin, and the service's answers. Pure, except for
 * the call itself. */
#ifndef HVD_RENDEZVOUS_JOIN_H
#define HVD_RENDEZVOUS_JOIN_H

#include <stddef.h>

#include "gpu_binding/base/error.h"
#include "pmix_boot/rendezvous/channel.h"

/* A rank's question to the service. All pointers are borrowed for the call. */
struct hvd_rendezvous_join_query {
    const char *address; /* see address.h */
    int slot; /* the number that the launcher gave this process */
    const char *host;
    const void *card;
    size_t card_bytes;
    /* Limit for reaching the service; in a static job also for waiting for the other
     * ranks. */
    int timeout_ms;
    int count; /* number of ranks that begin together; 0 in an elastic job */
    /* Static jobs only: */
    const int *ranks; /* [count] ranks of the launch; NULL: all */
    int index; /* index of this rank in ranks */
};

struct hvd_rendezvous_card {
    void *data;
    size_t bytes;
};

struct hvd_rendezvous_generation {
    unsigned number; /* 1, 2, ...; 0 in a static job */
    int rank;
    int size;
    /* [size] the array and each card are allocated by malloc */
    struct hvd_rendezvous_card *cards;
};

/* Encodes JOIN; the caller frees message->data. Returns 0 or HVD_ERR_NOMEM. */
int hvd_rendezvous_join_make(const struct hvd_rendezvous_join_query *query,
                             struct hvd_channel_message *message, struct hvd_error *err);

/* Decodes FORMED or REFUSED. The caller owns generation->cards. Fails with HVD_ERR_NET or
 * HVD_ERR_NOMEM, or, if refused, with the status and text of the service; *culprit is
 * then the rank of the launch that has failed, or -1 if none is known. */
int hvd_rendezvous_join_read(const struct hvd_channel_message *answer,
                             struct hvd_rendezvous_generation *generation, int *culprit,
                             struct hvd_error *err);

/* Joins a static job over a connection of its own: waits until all ranks that begin
 * together have joined. Fails like hvd_rendezvous_join_read, or with HVD_ERR_ARG for a
 * bad address, HVD_ERR_NET if the service cannot be reached or is gone, HVD_ERR_TIMEOUT
 * if it does not answer. */
int hvd_rendezvous_join_static(const struct hvd_rendezvous_join_query *query,
                               struct hvd_rendezvous_generation *generation, int *culprit,
                               struct hvd_error *err);

/* Frees cards[0 ... count - 1].data and the array; NULL is fine. */
void hvd_rendezvous_join_free(struct hvd_rendezvous_card *cards, int count);

#endif
