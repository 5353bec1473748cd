/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's side of an elastic job: one connection to the service, from the first meeting to the
 * end of the process. Its end is how the service learns that this process died; a forked child
 * does not hold it open.
 *
 * Threads: any, at any time; one meets at a time, and meanwhile the others learn nothing new. */
#ifndef HVD_MEMBER_H
#define HVD_MEMBER_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu_binding/base/error.h"

struct hvd_member_query {
    const char *address; /* see address.h */
    int slot; /* the number that the launcher gave this process */
    const char *host;
    const void *card;
    size_t card_bytes;
    int timeout_ms; /* for reaching the service; how long ranks wait is its own matter */
};

struct hvd_member_card {
    void *data;
    size_t bytes;
};

struct hvd_member_meeting {
    unsigned generation;
    int rank;
    int size;
    struct hvd_member_card *cards; /* [size], malloc'd one by one, as the array is */
};

/* Asks to begin, and waits until the next generation of ranks does. The caller owns
 * meeting->cards. Fails with HVD_ERR_ARG for a bad address, HVD_ERR_NET when the service cannot be
 * reached or is gone, HVD_ERR_TIMEOUT or HVD_ERR_STATE with the service's own words when this job
 * cannot go on. */
int hvd_member_meet(const struct hvd_member_query *query,
                    struct hvd_member_meeting *meeting, struct hvd_error *err);

/* Tells the service that this rank has the state of the training: only such ranks can give it to
 * others. Without a meeting before, does nothing. */
void hvd_member_ready(void);

/* Whether ranks wait to be let in, since the last meeting. Does not block. */
bool hvd_member_has_updates(void);

/* A rank of this generation that is gone, or -1. Does not block. */
int hvd_member_lost(void);

#endif
