/* SPDX-License-Identifier: Apache-2.0 */
/* Maps process set and name to this rank's record of the name. */
#include "collectives/agreement/tensor_table.h"

#include <stdlib.h>
#include <string.h>

static const char duplicate_text[] = "Requested to allreduce, allgather, or broadcast a "
                                     "tensor with the same name as another "
                                     "tensor that is currently being processed.  If you "
                                     "want to request another tensor, use a "
                                     "different tensor name.";

static const char duplicate_set_text[] =
    "This rank is creating a process set of the same label: wait for it first, or choose "
    "another label.";

void hvd_tensor_table_init(struct hvd_tensor_table *table, hvd_entry_ended ended,
                           void *context)
{
    *table = (struct hvd_tensor_table){.ended = ended, .context = context};
    pthread_mutex_init(&table->lock, NULL);
}

void hvd_tensor_table_finish(struct hvd_tensor_table *table)
{
    struct hvd_named_tensor *tensor;
    size_t cursor = 0;

    while ((tensor = hvd_hash_table_next(&table->by_name, &cursor)) != NULL) {
        free(tensor);
    }
    hvd_hash_table_finish(&table->by_name);
    pthread_mutex_destroy(&table->lock);
}

/* --- names; the lock is held --- */

static struct hvd_named_tensor *add_name(struct hvd_tensor_table *table,
                                         const struct hvd_key *key)
{
    size_t bytes = strlen(key->name) + 1;
    struct hvd_named_tensor *tensor = calloc(1, sizeof(*tensor) + bytes);

    if (tensor == NULL || hvd_hash_table_add(&table->by_name, key->hash, tensor) != 0) {
        free(tensor);
        return NULL;
    }
    memcpy(tensor->name, key->name, bytes);
    tensor->key = *key;
    tensor->key.name = tensor->name;
    return tensor;
}

/* Removes a name that is not in use any more. */
static void tidy_name(struct hvd_tensor_table *table, struct hvd_named_tensor *tensor)
{
    if (tensor->cached == NULL && tensor->keepers == 0 && !tensor->is_left &&
        !atomic_load(&tensor->is_taken)) {
        hvd_hash_table_remove(&table->by_name, tensor->key.hash, hvd_key_equal,
                              &tensor->key);
        free(tensor);
    }
}

/* Puts a name on the list of names to be removed later, because the progress thread may
 * be using it now. Any thread may call this. */
static void leave_name(struct hvd_tensor_table *table, struct hvd_named_tensor *tensor)
{
    if (!tensor->is_left) {
        tensor->is_left = true;
        tensor->next_left = table->left;
        table->left = tensor;
        atomic_store(&table->has_left, true);
    }
}

static void tidy_left(struct hvd_tensor_table *table)
{
    while (table->left != NULL) {
        struct hvd_named_tensor *tensor = table->left;

        table->left = tensor->next_left;
        tensor->is_left = false;
        tidy_name(table, tensor);
    }
    atomic_store(&table->has_left, false);
}

/* Finds the entry's name, or adds it. Returns NULL if memory is out. */
static struct hvd_named_tensor *look_up(struct hvd_tensor_table *table,
                                        const struct hvd_entry *entry)
{
    const struct hvd_key key =
        hvd_key_make(entry->descriptor.set, entry->descriptor.name);
    struct hvd_named_tensor *tensor =
        hvd_hash_table_find(&table->by_name, key.hash, hvd_key_equal, &key);

    return tensor != NULL ? tensor : add_name(table, &key);
}

static int take_name(struct hvd_tensor_table *table, struct hvd_entry *entry,
                     struct hvd_error *err)
{
    struct hvd_named_tensor *tensor =
        entry->keeps_tensor ? entry->tensor : look_up(table, entry);

    if (tensor == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for tensor %s",
                        entry->descriptor.name);
    }
    if (atomic_load(&tensor->is_taken)) {
        return hvd_fail(err, HVD_ERR_ARG, "%s",
                        entry->descriptor.kind == HVD_KIND_SET_CREATE ? duplicate_set_text
                                                                      : duplicate_text);
    }
    atomic_store(&tensor->is_taken, true);
    entry->tensor = tensor;
    return 0;
}

/* --- functions of the header --- */

/* The caller must hold the lock. */
static void keep_names(struct hvd_request *request)
{
    for (int i = 0; i < request->count; i++) {
        struct hvd_entry *entry = &request->entries[i];

        entry->tensor->keepers += entry->keeps_tensor ? 0 : 1;
        entry->keeps_tensor = true;
    }
}

int hvd_tensor_table_add(struct hvd_tensor_table *table, struct hvd_request *request,
                         struct hvd_error *err)
{
    int status = 0, added = 0;

    pthread_mutex_lock(&table->lock);
    while (status == 0 && added < request->count) {
        status = take_name(table, &request->entries[added], err);
        added += status == 0 ? 1 : 0;
    }
    while (status != 0 && added > 0) {
        struct hvd_named_tensor *tensor = request->entries[--added].tensor;

        atomic_store(&tensor->is_taken, false);
        tidy_name(table, tensor);
    }
    if (status == 0 && request->is_persistent) {
        keep_names(request);
    }
    pthread_mutex_unlock(&table->lock);
    return status;
}

void hvd_tensor_table_let_go(struct hvd_tensor_table *table, struct hvd_request *request)
{
    pthread_mutex_lock(&table->lock);
    for (int i = 0; i < request->count; i++) {
        struct hvd_entry *entry = &request->entries[i];

        if (entry->keeps_tensor) {
            entry->keeps_tensor = false;
            entry->tensor->keepers--;
            leave_name(table, entry->tensor);
        }
    }
    pthread_mutex_unlock(&table->lock);
}

struct hvd_named_tensor *hvd_tensor_table_find(struct hvd_tensor_table *table,
                                               const struct hvd_key *key)
{
    struct hvd_named_tensor *tensor;

    pthread_mutex_lock(&table->lock);
    tensor = hvd_hash_table_find(&table->by_name, key->hash, hvd_key_equal, key);
    pthread_mutex_unlock(&table->lock);
    return tensor;
}

struct hvd_named_tensor *hvd_tensor_table_cache(struct hvd_tensor_table *table,
                                                const struct hvd_key *key,
                                                struct hvd_cached_tensor *cached)
{
    struct hvd_named_tensor *tensor;

    pthread_mutex_lock(&table->lock);
    tensor = hvd_hash_table_find(&table->by_name, key->hash, hvd_key_equal, key);
    if (tensor == NULL) {
        tensor = add_name(table, key);
    }
    if (tensor != NULL) {
        tensor->cached = cached;
    }
    pthread_mutex_unlock(&table->lock);
    return tensor;
}

void hvd_tensor_table_uncache(struct hvd_tensor_table *table,
                              struct hvd_named_tensor *tensor)
{
    pthread_mutex_lock(&table->lock);
    tensor->cached = NULL;
    tidy_name(table, tensor);
    pthread_mutex_unlock(&table->lock);
}

/* --- entries --- */

void hvd_tensor_table_enter(struct hvd_tensor_table *table, struct hvd_entry *entry)
{
    if (atomic_load(&table->has_left)) {
        pthread_mutex_lock(&table->lock);
        tidy_left(table);
        pthread_mutex_unlock(&table->lock);
    }
    entry->tensor->entry = entry;
    entry->newer = NULL;
    entry->older = table->newest;
    if (table->newest != NULL) {
        table->newest->newer = entry;
    } else {
        table->oldest = entry;
    }
    table->newest = entry;
    table->removals += entry->descriptor.kind == HVD_KIND_SET_REMOVE ? 1 : 0;
    table->calls += entry->descriptor.call != 0 ? 1 : 0;
}

static void leave_table(struct hvd_tensor_table *table, struct hvd_entry *entry)
{
    entry->tensor->entry = NULL;
    entry->cached = NULL;
    if (entry->older != NULL) {
        entry->older->newer = entry->newer;
    } else {
        table->oldest = entry->newer;
    }
    if (entry->newer != NULL) {
        entry->newer->older = entry->older;
    } else {
        table->newest = entry->older;
    }
    table->removals -= entry->descriptor.kind == HVD_KIND_SET_REMOVE ? 1 : 0;
    table->calls -= entry->descriptor.call != 0 ? 1 : 0;
}

void hvd_tensor_table_end(struct hvd_tensor_table *table, struct hvd_entry *entry,
                          int status, const char *text)
{
    struct hvd_named_tensor *tensor = entry->tensor;

    if (tensor->entry == entry) {
        leave_table(table, entry);
    }
    if (tensor->cached != NULL) { /* the name stays, so no lock is needed */
        atomic_store(&tensor->is_taken, false);
    } else {
        pthread_mutex_lock(&table->lock);
        atomic_store(&tensor->is_taken, false);
        tidy_name(table, tensor);
        pthread_mutex_unlock(&table->lock);
    }
    table->ended(table->context, entry, status, text);
}
