/* SPDX-License-Identifier: Apache-2.0 */
/* Matches messages with receives. */
#include "collectives/p2p/matching.h"

#include <stdbool.h>

static struct hvd_matching_bucket *bucket_of(struct hvd_matching *table,
                                             const struct hvd_matching_item *item)
{
    uint64_t hash =
        ((uint64_t)item->tag * 31 + (uint64_t)(uint32_t)item->set) * 0x9e3779b97f4a7c15u;

    return &table->buckets[hash >> 56];
}

static bool fits_item(const struct hvd_matching_item *a,
                      const struct hvd_matching_item *b)
{
    return a->tag == b->tag && a->set == b->set &&
           (a->rank == b->rank || a->rank == HVD_MATCHING_ANY ||
            b->rank == HVD_MATCHING_ANY);
}

void hvd_matching_enter(struct hvd_matching *table, struct hvd_matching_item *item)
{
    struct hvd_matching_bucket *bucket = bucket_of(table, item);

    item->next = NULL;
    if (bucket->last != NULL) {
        bucket->last->next = item;
    } else {
        bucket->first = item;
    }
    bucket->last = item;
    table->count++;
}

/* Removes the item behind `before`, or the first one if that is NULL. */
static struct hvd_matching_item *unlink_after(struct hvd_matching *table,
                                              struct hvd_matching_bucket *bucket,
                                              struct hvd_matching_item *before)
{
    struct hvd_matching_item **link = before != NULL ? &before->next : &bucket->first;
    struct hvd_matching_item *item = *link;

    *link = item->next;
    if (bucket->last == item) {
        bucket->last = before;
    }
    table->count--;
    return item;
}

struct hvd_matching_item *hvd_matching_take(struct hvd_matching *table,
                                            const struct hvd_matching_item *key)
{
    struct hvd_matching_bucket *bucket = bucket_of(table, key);
    struct hvd_matching_item *before = NULL;

    for (struct hvd_matching_item *item = bucket->first; item != NULL;
         item = item->next) {
        if (fits_item(item, key)) {
            return unlink_after(table, bucket, before);
        }
        before = item;
    }
    return NULL;
}

static struct hvd_matching_item *take_of_set(struct hvd_matching *table,
                                             struct hvd_matching_bucket *bucket, int set)
{
    struct hvd_matching_item *before = NULL;

    for (struct hvd_matching_item *item = bucket->first; item != NULL;
         item = item->next) {
        if (item->set == set) {
            return unlink_after(table, bucket, before);
        }
        before = item;
    }
    return NULL;
}

struct hvd_matching_item *hvd_matching_take_of_set(struct hvd_matching *table, int set)
{
    struct hvd_matching_item *item = NULL;

    for (int i = 0; table->count > 0 && item == NULL && i < HVD_MATCHING_BUCKETS; i++) {
        item = take_of_set(table, &table->buckets[i], set);
    }
    return item;
}

struct hvd_matching_item *hvd_matching_take_any(struct hvd_matching *table)
{
    for (int i = 0; table->count > 0 && i < HVD_MATCHING_BUCKETS; i++) {
        if (table->buckets[i].first != NULL) {
            return unlink_after(table, &table->buckets[i], NULL);
        }
    }
    return NULL;
}
