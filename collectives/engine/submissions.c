/* SPDX-License-Identifier: Apache-2.0 */
/* What threads of the program have submitted. */
#include "collectives/engine/submissions.h"

static const char duplicate_text[] = "Requested to allreduce, allgather, or broadcast a "
                                     "tensor with the same name as another "
                                     "tensor that is currently being processed.  If you "
                                     "want to request another tensor, use a "
                                     "different tensor name.";

void hvd_submissions_init(struct hvd_submissions *submissions)
{
    pthread_mutex_init(&submissions->lock, NULL);
    submissions->fresh_end = &submissions->fresh;
}

void hvd_submissions_finish(struct hvd_submissions *submissions)
{
    hvd_hash_table_finish(&submissions->in_flight);
    pthread_mutex_destroy(&submissions->lock);
}

static bool entry_has_key(const void *item, const void *key)
{
    const struct hvd_entry *entry = item;

    return hvd_key_equal(&entry->key, key);
}

static void unregister(struct hvd_submissions *submissions, const struct hvd_entry *entry)
{
    hvd_hash_table_remove(&submissions->in_flight, entry->key.hash, entry_has_key,
                          &entry->key);
}

static int register_entry(struct hvd_submissions *submissions, struct hvd_entry *entry,
                          struct hvd_error *err)
{
    entry->key = hvd_key_make(entry->proposal.set, entry->proposal.name);
    if (hvd_hash_table_find(&submissions->in_flight, entry->key.hash, entry_has_key,
                            &entry->key) != NULL) {
        return hvd_fail(err, HVD_ERR_ARG, "%s", duplicate_text);
    }
    return hvd_hash_table_add(&submissions->in_flight, entry->key.hash, entry) == 0
               ? 0
               : hvd_fail(err, HVD_ERR_NOMEM, "no memory for tensor %s",
                          entry->proposal.name);
}

static int add_all(struct hvd_submissions *submissions, struct hvd_request *request,
                   struct hvd_error *err)
{
    for (int i = 0; i < request->count; i++) {
        int status = register_entry(submissions, &request->entries[i], err);

        if (status != 0) {
            while (i-- > 0) {
                unregister(submissions, &request->entries[i]);
            }
            return status;
        }
    }
    for (int i = 0; i < request->count; i++) {
        *submissions->fresh_end = &request->entries[i];
        submissions->fresh_end = &request->entries[i].next;
    }
    return 0;
}

int hvd_submissions_add(struct hvd_submissions *submissions, struct hvd_request *request,
                        struct hvd_error *err)
{
    int status;

    pthread_mutex_lock(&submissions->lock);
    if (submissions->refusal.status != 0) {
        status =
            hvd_fail(err, submissions->refusal.status, "%s", submissions->refusal.text);
    } else {
        status = add_all(submissions, request, err);
    }
    pthread_mutex_unlock(&submissions->lock);
    return status;
}

struct hvd_entry *hvd_submissions_take(struct hvd_submissions *submissions)
{
    struct hvd_entry *first;

    pthread_mutex_lock(&submissions->lock);
    first = submissions->fresh;
    submissions->fresh = NULL;
    submissions->fresh_end = &submissions->fresh;
    pthread_mutex_unlock(&submissions->lock);
    return first;
}

bool hvd_submissions_are_there(struct hvd_submissions *submissions)
{
    bool are;

    pthread_mutex_lock(&submissions->lock);
    are = submissions->fresh != NULL;
    pthread_mutex_unlock(&submissions->lock);
    return are;
}

void hvd_submissions_end(struct hvd_submissions *submissions,
                         const struct hvd_entry *entry)
{
    pthread_mutex_lock(&submissions->lock);
    unregister(submissions, entry);
    pthread_mutex_unlock(&submissions->lock);
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
