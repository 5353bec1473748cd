/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors that rank 0 has given an id. */
#include "collectives/agreement/known.h"

#include <stdlib.h>

static bool has_key(const void *item, const void *key)
{
    const struct hvd_known *known = item;

    return hvd_key_equal(&known->key, key);
}

static bool has_id(const void *item, const void *key)
{
    const struct hvd_known *known = item;
    const uint64_t *id = key;

    return known->id == *id;
}

static void free_known(struct hvd_known *known)
{
    hvd_proposal_free(known->proposal);
    free(known);
}

void hvd_known_finish(struct hvd_known_set *set)
{
    size_t cursor = 0;
    struct hvd_known *known;

    while ((known = hvd_table_next(&set->by_id, &cursor)) != NULL) {
        free_known(known);
    }
    hvd_table_finish(&set->by_key);
    hvd_table_finish(&set->by_id);
    *set = (struct hvd_known_set){0};
}

struct hvd_known *hvd_known_find(const struct hvd_known_set *set,
                                 const struct hvd_key *key)
{
    return hvd_table_find(&set->by_key, key->hash, has_key, key);
}

struct hvd_known *hvd_known_by_id(const struct hvd_known_set *set, uint64_t id)
{
    return hvd_table_find(&set->by_id, hvd_hash_number(id), has_id, &id);
}

static void link_newest(struct hvd_known_set *set, struct hvd_known *known)
{
    known->newer = NULL;
    known->older = set->newest;
    if (set->newest != NULL) {
        set->newest->newer = known;
    } else {
        set->oldest = known;
    }
    set->newest = known;
}

static void unlink_used(struct hvd_known_set *set, struct hvd_known *known)
{
    if (known->newer != NULL) {
        known->newer->older = known->older;
    } else {
        set->newest = known->older;
    }
    if (known->older != NULL) {
        known->older->newer = known->newer;
    } else {
        set->oldest = known->newer;
    }
}

struct hvd_known *hvd_known_add(struct hvd_known_set *set, uint64_t id,
                                const struct hvd_proposal *proposal)
{
    struct hvd_known *known = calloc(1, sizeof(*known));

    if (known == NULL) {
        return NULL;
    }
    known->id = id;
    known->proposal = hvd_proposal_copy(proposal);
    if (known->proposal == NULL) {
        free_known(known);
        return NULL;
    }
    known->bytes = hvd_proposal_bytes(proposal);
    known->key = hvd_key_make(proposal->set, known->proposal->name);
    if (hvd_table_add(&set->by_id, hvd_hash_number(id), known) != 0) {
        free_known(known);
        return NULL;
    }
    if (hvd_table_add(&set->by_key, known->key.hash, known) != 0) {
        hvd_table_remove(&set->by_id, hvd_hash_number(id), has_id, &id);
        free_known(known);
        return NULL;
    }
    link_newest(set, known);
    set->count++;
    return known;
}

void hvd_known_touch(struct hvd_known_set *set, struct hvd_known *known)
{
    if (!known->is_evicted && set->newest != known) {
        unlink_used(set, known);
        link_newest(set, known);
    }
}

void hvd_known_evict(struct hvd_known_set *set, struct hvd_known *known,
                     uint64_t position)
{
    hvd_table_remove(&set->by_key, known->key.hash, has_key, &known->key);
    unlink_used(set, known);
    set->count--;
    known->is_evicted = true;
    known->evicted_at = position;
    known->newer = NULL;
    known->older = NULL;
    if (set->last_evicted != NULL) {
        set->last_evicted->older = known;
    } else {
        set->first_evicted = known;
    }
    set->last_evicted = known;
}

void hvd_known_forget(struct hvd_known_set *set, uint64_t position)
{
    while (set->first_evicted != NULL && set->first_evicted->evicted_at <= position &&
           set->first_evicted->uses == 0) {
        struct hvd_known *known = set->first_evicted;

        set->first_evicted = known->older;
        if (set->first_evicted == NULL) {
            set->last_evicted = NULL;
        }
        hvd_table_remove(&set->by_id, hvd_hash_number(known->id), has_id, &known->id);
        free_known(known);
    }
}
