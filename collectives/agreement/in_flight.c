/* SPDX-License-Identifier: Apache-2.0 */
/* What this rank has in flight. */
#include "collectives/agreement/in_flight.h"

static const char duplicate_text[] = "Requested to allreduce, allgather, or broadcast a "
                                     "tensor with the same name as another "
                                     "tensor that is currently being processed.  If you "
                                     "want to request another tensor, use a "
                                     "different tensor name.";

static bool entry_has_key(const void *item, const void *key)
{
    const struct hvd_entry *entry = item;

    return hvd_key_equal(&entry->key, key);
}

void hvd_in_flight_init(struct hvd_in_flight *in_flight, hvd_entry_ended ended,
                        void *context)
{
    *in_flight = (struct hvd_in_flight){.ended = ended, .context = context};
    pthread_mutex_init(&in_flight->lock, NULL);
}

void hvd_in_flight_finish(struct hvd_in_flight *in_flight)
{
    hvd_hash_table_finish(&in_flight->by_key);
    pthread_mutex_destroy(&in_flight->lock);
}

/* --- by key --- */

/* Locked. */
static int add_entry(struct hvd_in_flight *in_flight, struct hvd_entry *entry,
                     struct hvd_error *err)
{
    if (hvd_hash_table_find(&in_flight->by_key, entry->key.hash, entry_has_key,
                            &entry->key) != NULL) {
        return hvd_fail(err, HVD_ERR_ARG, "%s", duplicate_text);
    }
    return hvd_hash_table_add(&in_flight->by_key, entry->key.hash, entry) == 0
               ? 0
               : hvd_fail(err, HVD_ERR_NOMEM, "no memory for tensor %s",
                          entry->proposal.name);
}

int hvd_in_flight_add(struct hvd_in_flight *in_flight, struct hvd_request *request,
                      struct hvd_error *err)
{
    int status = 0, added = 0;

    for (int i = 0; i < request->count; i++) {
        struct hvd_entry *entry = &request->entries[i];

        entry->key = hvd_key_make(entry->proposal.set, entry->proposal.name);
    }
    pthread_mutex_lock(&in_flight->lock);
    while (status == 0 && added < request->count) {
        status = add_entry(in_flight, &request->entries[added], err);
        added += status == 0 ? 1 : 0;
    }
    while (status != 0 && added > 0) {
        const struct hvd_key *key = &request->entries[--added].key;

        hvd_hash_table_remove(&in_flight->by_key, key->hash, entry_has_key, key);
    }
    pthread_mutex_unlock(&in_flight->lock);
    return status;
}

struct hvd_entry *hvd_in_flight_find(struct hvd_in_flight *in_flight,
                                     const struct hvd_cached_tensor *cached,
                                     const struct hvd_key *key)
{
    struct hvd_entry *entry;

    if (cached != NULL && cached->mine != NULL) {
        return cached->mine;
    }
    pthread_mutex_lock(&in_flight->lock);
    entry = hvd_hash_table_find(&in_flight->by_key, key->hash, entry_has_key, key);
    pthread_mutex_unlock(&in_flight->lock);
    return entry != NULL && entry->is_entered ? entry : NULL;
}

/* --- those that the agreement has seen --- */

void hvd_in_flight_bind(struct hvd_entry *entry, struct hvd_cached_tensor *cached)
{
    cached->mine = entry;
    entry->cached = cached;
}

void hvd_in_flight_unbind(struct hvd_entry *entry)
{
    if (entry->cached != NULL) {
        entry->cached->mine = NULL;
        entry->cached = NULL;
    }
}

void hvd_in_flight_enter(struct hvd_in_flight *in_flight, struct hvd_entry *entry,
                         struct hvd_cached_tensor *cached)
{
    entry->is_entered = true;
    entry->newer = NULL;
    entry->older = in_flight->newest;
    if (in_flight->newest != NULL) {
        in_flight->newest->newer = entry;
    } else {
        in_flight->oldest = entry;
    }
    in_flight->newest = entry;
    in_flight->removals += entry->proposal.kind == HVD_KIND_SET_REMOVE ? 1 : 0;
    if (cached != NULL) {
        hvd_in_flight_bind(entry, cached);
    }
}

static void leave(struct hvd_in_flight *in_flight, struct hvd_entry *entry)
{
    entry->is_entered = false;
    if (entry->older != NULL) {
        entry->older->newer = entry->newer;
    } else {
        in_flight->oldest = entry->newer;
    }
    if (entry->newer != NULL) {
        entry->newer->older = entry->older;
    } else {
        in_flight->newest = entry->older;
    }
    in_flight->removals -= entry->proposal.kind == HVD_KIND_SET_REMOVE ? 1 : 0;
    hvd_in_flight_unbind(entry);
}

void hvd_in_flight_end(struct hvd_in_flight *in_flight, struct hvd_entry *entry,
                       int status, const char *text)
{
    if (entry->is_entered) {
        leave(in_flight, entry);
    }
    pthread_mutex_lock(&in_flight->lock);
    hvd_hash_table_remove(&in_flight->by_key, entry->key.hash, entry_has_key,
                          &entry->key);
    pthread_mutex_unlock(&in_flight->lock);
    in_flight->ended(in_flight->context, entry, status, text);
}
