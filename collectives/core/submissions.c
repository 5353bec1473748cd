/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that threads of the program have submitted. */
#include "collectives/core/submissions.h"

#include "collectives/core/failure_text.h"
#include "collectives/core/grace.h"
#include "pmix_boot/cause.h"

static void empty_queue(struct hvd_submitted *queue)
{
    queue->first = NULL;
    queue->end = &queue->first;
    atomic_store(&queue->has_some, false);
}

static void append_entry(struct hvd_submitted *queue, struct hvd_entry *entry)
{
    *queue->end = entry;
    queue->end = &entry->next;
    atomic_store(&queue->has_some, true);
}

/* Takes the whole queue. An empty one, as in most turns of the driver, costs no lock. */
static struct hvd_entry *take_queue(struct hvd_submissions *submissions,
                                    struct hvd_submitted *queue)
{
    struct hvd_entry *first;

    if (!atomic_load(&queue->has_some)) {
        return NULL;
    }
    pthread_mutex_lock(&submissions->lock);
    first = queue->first;
    empty_queue(queue);
    pthread_mutex_unlock(&submissions->lock);
    return first;
}

void hvd_submissions_init(struct hvd_submissions *submissions, hvd_entry_ended ended,
                          void *context)
{
    pthread_mutex_init(&submissions->lock, NULL);
    hvd_tensor_table_init(&submissions->tensors, ended, context);
    empty_queue(&submissions->collectives);
    empty_queue(&submissions->p2p);
}

void hvd_submissions_finish(struct hvd_submissions *submissions)
{
    hvd_tensor_table_finish(&submissions->tensors);
    pthread_mutex_destroy(&submissions->lock);
}

/* Returns the status with which submissions are refused. Needs no lock: a refusal never
 * changes. */
static int refuse_request(const struct hvd_submissions *submissions,
                          const struct hvd_request *request, struct hvd_error *err)
{
    const struct hvd_error *refusal = &submissions->refusal;
    char operation[HVD_OPERATION_BYTES];

    if (refusal->status == HVD_ERR_SHUTDOWN && !request->is_optional) {
        hvd_grace_begin();
        hvd_cause_miss(hvd_entry_operation(request->entries, operation));
    }
    return hvd_failure_text(err, refusal->status, refusal->text, "before",
                            request->entries);
}

int hvd_submissions_add(struct hvd_submissions *submissions, struct hvd_request *request,
                        struct hvd_error *err)
{
    bool is_refused;
    int status;

    pthread_mutex_lock(&submissions->lock);
    is_refused = submissions->refusal.status != 0;
    status = is_refused ? 0 : hvd_tensor_table_add(&submissions->tensors, request, err);
    for (int i = 0; i < request->count && status == 0 && !is_refused; i++) {
        append_entry(&submissions->collectives, &request->entries[i]);
    }
    pthread_mutex_unlock(&submissions->lock);
    return is_refused ? refuse_request(submissions, request, err) : status;
}

int hvd_submissions_add_p2p(struct hvd_submissions *submissions,
                            struct hvd_request *request, struct hvd_error *err)
{
    bool is_refused;

    pthread_mutex_lock(&submissions->lock);
    is_refused = submissions->refusal.status != 0;
    if (!is_refused) {
        append_entry(&submissions->p2p, request->entries);
    }
    pthread_mutex_unlock(&submissions->lock);
    return is_refused ? refuse_request(submissions, request, err) : 0;
}

struct hvd_entry *hvd_submissions_take(struct hvd_submissions *submissions)
{
    return take_queue(submissions, &submissions->collectives);
}

struct hvd_entry *hvd_submissions_take_p2p(struct hvd_submissions *submissions)
{
    return take_queue(submissions, &submissions->p2p);
}

void hvd_submissions_forget(struct hvd_submissions *submissions,
                            struct hvd_request *request)
{
    hvd_tensor_table_let_go(&submissions->tensors, request);
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
