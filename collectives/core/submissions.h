/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that threads of the program have submitted: entries until the driver
 * (progress.h) takes them, and names until the entries have ended.
 *
 * Threads: any. The lock is held for a few instructions; its holder takes no other lock
 * than that of tensors. */
#ifndef HVD_SUBMISSIONS_H
#define HVD_SUBMISSIONS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "collectives/agreement/tensor_table.h"

/* Entries in the order in which they came. */
struct hvd_submitted {
    struct hvd_entry *first;
    struct hvd_entry **end;
    _Atomic bool has_some; /* changed under the lock, read by any thread */
};

struct hvd_submissions {
    pthread_mutex_t lock;
    struct hvd_submitted collectives; /* collectives that have not been taken yet */
    struct hvd_submitted p2p;
    /* the tensors of collectives, until they have ended */
    struct hvd_tensor_table tensors;
    /* status != 0: every submission is refused with this error */
    struct hvd_error refusal;
};

/* Whether some collectives, or messages, have not been taken yet. Any thread. */
static inline bool hvd_submissions_has_some(const struct hvd_submissions *submissions)
{
    return atomic_load(&submissions->collectives.has_some);
}

static inline bool hvd_submissions_has_p2p(const struct hvd_submissions *submissions)
{
    return atomic_load(&submissions->p2p.has_some);
}

/* Returns the gate (loop.h) of the source that takes messages. */
static inline const _Atomic bool *
hvd_submissions_message_gate(const struct hvd_submissions *submissions)
{
    return &submissions->p2p.has_some;
}

/* Whether any collective has been submitted and has not ended, or a message has not been
 * taken yet. The progress lock is held. */
static inline bool
hvd_submissions_are_under_way(const struct hvd_submissions *submissions)
{
    return submissions->tensors.oldest != NULL ||
           atomic_load(&submissions->collectives.has_some) ||
           atomic_load(&submissions->p2p.has_some);
}

/* Returns the tensors of collectives that have not ended. */
static inline struct hvd_tensor_table *
hvd_submissions_tensors(struct hvd_submissions *submissions)
{
    return &submissions->tensors;
}

/* Initializes the queues. ended: called when a tensor of a collective ends. */
void hvd_submissions_init(struct hvd_submissions *submissions, hvd_entry_ended ended,
                          void *context);
void hvd_submissions_finish(struct hvd_submissions *submissions);

/* Adds all entries of a request, or adds none and returns an error: HVD_ERR_ARG for a
 * name that is in flight. */
int hvd_submissions_add(struct hvd_submissions *submissions, struct hvd_request *request,
                        struct hvd_error *err);

/* Takes the entries that have been added, in order; NULL: there are none. */
struct hvd_entry *hvd_submissions_take(struct hvd_submissions *submissions);

/* Adds a send or receive; its name may be in flight already. */
int hvd_submissions_add_p2p(struct hvd_submissions *submissions,
                            struct hvd_request *request, struct hvd_error *err);
struct hvd_entry *hvd_submissions_take_p2p(struct hvd_submissions *submissions);

/* Makes all later submissions fail with this error. Only the first call counts. */
void hvd_submissions_refuse(struct hvd_submissions *submissions, int status,
                            const char *text);

/* Returns the error that submissions get; status 0: they are accepted. The progress lock
 * is held, as callers of refuse hold it. */
static inline const struct hvd_error *
hvd_submissions_refusal(const struct hvd_submissions *submissions)
{
    return &submissions->refusal;
}

/* Forgets a persistent request, which has ended and is about to be freed. Any thread. */
void hvd_submissions_forget(struct hvd_submissions *submissions,
                            struct hvd_request *request);

#endif
