/* SPDX-License-Identifier: Apache-2.0 */
/* What threads of the program have submitted. */
#include "collectives/engine/submissions.h"

void hvd_submissions_init(struct hvd_submissions *submissions, hvd_entry_ended ended,
                          void *context)
{
    pthread_mutex_init(&submissions->lock, NULL);
    hvd_tensor_table_init(&submissions->tensors, ended, context);
    submissions->fresh_end = &submissions->fresh;
}

void hvd_submissions_finish(struct hvd_submissions *submissions)
{
    hvd_tensor_table_finish(&submissions->tensors);
    pthread_mutex_destroy(&submissions->lock);
}

int hvd_submissions_add(struct hvd_submissions *submissions, struct hvd_request *request,
                        struct hvd_error *err)
{
    const struct hvd_error *refusal = &submissions->refusal;
    char operation[HVD_OPERATION_BYTES];
    int status;

    pthread_mutex_lock(&submissions->lock);
    if (refusal->status == HVD_ERR_SHUTDOWN) { /* scripts know the sentence */
        status = hvd_fail(err, refusal->status, "%s", refusal->text);
    } else if (refusal->status != 0) {
        status = hvd_fail(err, refusal->status, "%.320s, before %s", refusal->text,
                          hvd_entry_operation(request->entries, operation));
    } else {
        status = hvd_tensor_table_add(&submissions->tensors, request, err);
    }
    for (int i = 0; i < request->count && status == 0; i++) {
        *submissions->fresh_end = &request->entries[i];
        submissions->fresh_end = &request->entries[i].next;
        atomic_store(&submissions->are_fresh, true);
    }
    pthread_mutex_unlock(&submissions->lock);
    return status;
}

struct hvd_entry *hvd_submissions_take(struct hvd_submissions *submissions)
{
    struct hvd_entry *first;

    if (!atomic_load(&submissions->are_fresh)) {
        return NULL;
    }
    pthread_mutex_lock(&submissions->lock);
    first = submissions->fresh;
    submissions->fresh = NULL;
    submissions->fresh_end = &submissions->fresh;
    atomic_store(&submissions->are_fresh, false);
    pthread_mutex_unlock(&submissions->lock);
    return first;
}

void hvd_submissions_refuse(struct hvd_submissions *submissions, int status,
                            const char *text)
{
    pthread_mutex_lock(&submissions->lock);
    if (submissions->refusal.status == 0) {
        hvd_fail(&submissions->refusal, status, "%s", text);
    }
    pthread_mutex_unlock(&submissions->lock);
}
