/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the service's answers to a rank that wants to begin. Pure. */
#ifndef HVD_RENDEZVOUS_JOIN_H
#define HVD_RENDEZVOUS_JOIN_H

#include <stddef.h>

#include "gpu_binding/base/error.h"
#include "pmix_boot/rendezvous/channel.h"

struct hvd_rendezvous_card {
    void *data;
    size_t bytes;
};

struct hvd_rendezvous_generation {
    unsigned number; /* 1, 2, ... */
    int rank;
    int size;
    struct hvd_rendezvous_card *cards; /* [size], malloc'd one by one, as the array is */
};

/* Frees cards[0 ... count - 1].data and the array; NULL is fine. */
void hvd_rendezvous_answer_free(struct hvd_rendezvous_card *cards, int count);

/* Reads FORMED. The caller owns generation->cards. HVD_ERR_NET or HVD_ERR_NOMEM. */
int hvd_rendezvous_answer_formed(const struct hvd_channel_message *message,
                                 struct hvd_rendezvous_generation *generation,
                                 struct hvd_error *err);

/* Reads REFUSED: returns its status, always a failure, with the service's words in err. *culprit is the rank
 * of the launch that has failed, or -1. */
int hvd_rendezvous_answer_refused(const struct hvd_channel_message *message, int *culprit,
                                  struct hvd_error *err);

#endif
