/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors to which rank 0 has given an id. */
#include "collectives/agreement/response_cache.h"

#include <stdlib.h>

#include "collectives/agreement/codec.h"
#include "collectives/agreement/tensor_table.h"

static bool has_id(const void *item, const void *key)
{
    const struct hvd_cached_tensor *cached = item;
    const uint64_t *id = key;

    return cached->id == *id;
}

static void free_cached(struct hvd_cached_tensor *cached)
{
    hvd_descriptor_free(cached->descriptor);
    free(cached);
}

void hvd_response_cache_init(struct hvd_response_cache *set,
                             struct hvd_tensor_table *names)
{
    *set = (struct hvd_response_cache){.names = names};
}

void hvd_response_cache_finish(struct hvd_response_cache *set)
{
    size_t cursor = 0;
    struct hvd_cached_tensor *cached;

    for (cached = set->oldest; cached != NULL; cached = cached->newer) {
        hvd_tensor_table_uncache(set->names, cached->tensor);
    }
    while ((cached = hvd_hash_table_next(&set->by_id, &cursor)) != NULL) {
        free_cached(cached);
    }
    hvd_hash_table_finish(&set->by_id);
    *set = (struct hvd_response_cache){0};
}

struct hvd_cached_tensor *hvd_response_cache_find(const struct hvd_response_cache *set,
                                                  const struct hvd_key *key)
{
    const struct hvd_named_tensor *tensor = hvd_tensor_table_find(set->names, key);

    return tensor != NULL ? tensor->cached : NULL;
}

struct hvd_cached_tensor *hvd_response_cache_by_id(const struct hvd_response_cache *set,
                                                   uint64_t id)
{
    return hvd_hash_table_find(&set->by_id, hvd_hash_number(id), has_id, &id);
}

static void link_newest(struct hvd_response_cache *set, struct hvd_cached_tensor *cached)
{
    cached->newer = NULL;
    cached->older = set->newest;
    if (set->newest != NULL) {
        set->newest->newer = cached;
    } else {
        set->oldest = cached;
    }
    set->newest = cached;
}

static void unlink_used(struct hvd_response_cache *set, struct hvd_cached_tensor *cached)
{
    if (cached->newer != NULL) {
        cached->newer->older = cached->older;
    } else {
        set->newest = cached->older;
    }
    if (cached->older != NULL) {
        cached->older->newer = cached->newer;
    } else {
        set->oldest = cached->newer;
    }
}

struct hvd_cached_tensor *hvd_response_cache_add(struct hvd_response_cache *set,
                                                 uint64_t id,
                                                 const struct hvd_descriptor *descriptor)
{
    struct hvd_cached_tensor *cached = calloc(1, sizeof(*cached));

    if (cached == NULL) {
        return NULL;
    }
    cached->id = id;
    cached->descriptor = hvd_descriptor_copy(descriptor);
    if (cached->descriptor == NULL) {
        free_cached(cached);
        return NULL;
    }
    cached->bytes = hvd_descriptor_bytes(descriptor);
    cached->key = hvd_key_make(descriptor->set, cached->descriptor->name);
    if (hvd_hash_table_add(&set->by_id, hvd_hash_number(id), cached) != 0) {
        free_cached(cached);
        return NULL;
    }
    cached->tensor = hvd_tensor_table_cache(set->names, &cached->key, cached);
    if (cached->tensor == NULL) {
        hvd_hash_table_remove(&set->by_id, hvd_hash_number(id), has_id, &id);
        free_cached(cached);
        return NULL;
    }
    link_newest(set, cached);
    set->count++;
    return cached;
}

void hvd_response_cache_touch(struct hvd_response_cache *set,
                              struct hvd_cached_tensor *cached)
{
    if (!cached->is_evicted && set->newest != cached) {
        unlink_used(set, cached);
        link_newest(set, cached);
    }
}

void hvd_response_cache_evict(struct hvd_response_cache *set,
                              struct hvd_cached_tensor *cached, uint64_t position)
{
    hvd_tensor_table_uncache(set->names, cached->tensor);
    cached->tensor = NULL;
    unlink_used(set, cached);
    set->count--;
    cached->is_evicted = true;
    cached->evicted_at = position;
    cached->newer = NULL;
    cached->older = NULL;
    if (set->last_evicted != NULL) {
        set->last_evicted->older = cached;
    } else {
        set->first_evicted = cached;
    }
    set->last_evicted = cached;
}

void hvd_response_cache_forget(struct hvd_response_cache *set, uint64_t position)
{
    while (set->first_evicted != NULL && set->first_evicted->evicted_at <= position &&
           set->first_evicted->uses == 0) {
        struct hvd_cached_tensor *cached = set->first_evicted;

        set->first_evicted = cached->older;
        if (set->first_evicted == NULL) {
            set->last_evicted = NULL;
        }
        hvd_hash_table_remove(&set->by_id, hvd_hash_number(cached->id), has_id,
                              &cached->id);
        free_cached(cached);
    }
}
