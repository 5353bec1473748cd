/* SPDX-License-Identifier: Apache-2.0 */
/* What threads of the program have submitted: until the driver (progress.h) takes it, and
 * its names until it has ended.
 *
 * Threads: any. The lock is held for a few instructions; who holds it takes no other lock
 * but that of tensors. */
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
    struct hvd_submitted collectives; /* those not yet taken */
    struct hvd_submitted p2p;
    struct hvd_tensor_table tensors; /* of collectives, until they have ended */
    struct hvd_error refusal; /* status != 0: every submission ends with this */
};

/* Some collectives, or messages, have not been taken yet. Any thread. */
static inline bool hvd_submissions_has_some(const struct hvd_submissions *submissions)
{
    return atomic_load(&submissions->collectives.has_some);
}

static inline bool hvd_submissions_has_p2p(const struct hvd_submissions *submissions)
{
    return atomic_load(&submissions->p2p.has_some);
}

/* The same as a gate of a source (loop.h). */
static inline const _Atomic bool *
hvd_submissions_message_gate(const struct hvd_submissions *submissions)
{
    return &submissions->p2p.has_some;
}

/* Collectives have been submitted and have not ended. The progress lock is held. */
static inline bool
hvd_submissions_are_under_way(const struct hvd_submissions *submissions)
{
    return submissions->tensors.oldest != NULL || hvd_submissions_has_some(submissions);
}

/* The tensors of collectives, until these have ended. */
static inline struct hvd_tensor_table *
hvd_submissions_tensors(struct hvd_submissions *submissions)
{
    return &submissions->tensors;
}

/* ended: of tensors. */
void hvd_submissions_init(struct hvd_submissions *submissions, hvd_entry_ended ended,
                          void *context);
void hvd_submissions_finish(struct hvd_submissions *submissions);

/* Takes all entries of a request, or none: then why, HVD_ERR_ARG for a name in flight. */
int hvd_submissions_add(struct hvd_submissions *submissions, struct hvd_request *request,
                        struct hvd_error *err);

/* The entries, in order, that have been added since; NULL: none. */
struct hvd_entry *hvd_submissions_take(struct hvd_submissions *submissions);

/* The same of a send or a receive, which is known by no name. */
int hvd_submissions_add_p2p(struct hvd_submissions *submissions,
                            struct hvd_request *request, struct hvd_error *err);
struct hvd_entry *hvd_submissions_take_p2p(struct hvd_submissions *submissions);

/* From now on submissions get this; the first call counts. */
void hvd_submissions_refuse(struct hvd_submissions *submissions, int status,
                            const char *text);

/* That; status 0: submissions are taken. The progress lock is held, as it is by callers
 * of refuse. */
static inline const struct hvd_error *
hvd_submissions_refusal(const struct hvd_submissions *submissions)
{
    return &submissions->refusal;
}

/* A persistent request, which has ended, is about to be freed. Any thread. */
void hvd_submissions_forget(struct hvd_submissions *submissions,
                            struct hvd_request *request);

#endif
