/* SPDX-License-Identifier: Apache-2.0 */
/* What threads of the program have submitted: until the driver (progress.h) takes it, and its names
 * until it has ended.
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
    struct hvd_submitted messages;
    struct hvd_tensor_table tensors; /* of collectives, until they have ended */
    struct hvd_error refusal; /* status != 0: every submission ends with this */
    _Atomic int64_t taken_ns; /* when the driver last found some */
    _Atomic int64_t cycle_ns; /* the cycle time then */
    _Atomic int64_t messages_ns; /* when the driver last found messages */
};

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
int hvd_submissions_add_message(struct hvd_submissions *submissions,
                                struct hvd_request *request, struct hvd_error *err);
struct hvd_entry *hvd_submissions_take_messages(struct hvd_submissions *submissions);

/* From now on submissions get this; the first call counts. */
void hvd_submissions_refuse(struct hvd_submissions *submissions, int status,
                            const char *text);

#endif
