/* SPDX-License-Identifier: Apache-2.0 */
/* The batches of a job, added up by their tensors. */
#include "collectives/trace/straggler_buckets.h"

#include <stdio.h>
#include <string.h>

enum {
    SLOTS = 4 * HVD_BUCKETS
};

/* FNV-1a, a hash that is good enough for names of tensors. */
static uint64_t hash_of(const struct hvd_straggler_bucket *batch)
{
    uint64_t hash = 14695981039346656037u;

    for (const char *at = batch->name; *at != '\0'; at++) {
        hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    }
    hash = (hash ^ (uint64_t)batch->kind) * 1099511628211u;
    return (hash ^ (uint64_t)batch->tensors) * 1099511628211u;
}

static int add_bucket(struct hvd_straggler_buckets *buckets,
                      const struct hvd_straggler_bucket *batch, uint64_t key)
{
    struct hvd_straggler_bucket *bucket = &buckets->list[buckets->count];

    *bucket = *batch;
    bucket->key = key;
    bucket->batches = 0;
    bucket->bytes = 0;
    bucket->least_us = INT64_MAX;
    return buckets->count++;
}

/* Returns the bucket of the batch, a new one, or the last one if there is no room. */
static int find_bucket(struct hvd_straggler_buckets *buckets,
                       const struct hvd_straggler_bucket *batch)
{
    const uint64_t key = hash_of(batch);
    size_t slot = (size_t)key % SLOTS;

    while (buckets->slots[slot] != 0) {
        if (buckets->list[buckets->slots[slot] - 1].key == key) {
            return buckets->slots[slot] - 1;
        }
        slot = (slot + 1) % SLOTS;
    }
    if (buckets->count == HVD_BUCKETS) {
        snprintf(buckets->list[HVD_BUCKETS - 1].name, HVD_BUCKET_NAME, "(others)");
        return HVD_BUCKETS - 1;
    }
    buckets->slots[slot] = (int16_t)(buckets->count + 1);
    return add_bucket(buckets, batch, key);
}

int hvd_straggler_buckets_count(struct hvd_straggler_buckets *buckets,
                                const struct hvd_straggler_bucket *batch)
{
    int index = find_bucket(buckets, batch);

    buckets->list[index].batches++;
    buckets->list[index].bytes += batch->bytes;
    return index;
}

void hvd_straggler_buckets_add(struct hvd_straggler_buckets *buckets, int index,
                               int64_t moving_us, int64_t late_us)
{
    struct hvd_straggler_bucket *bucket = &buckets->list[index];

    bucket->moving_us += moving_us;
    bucket->late_us += late_us;
    bucket->least_us = moving_us < bucket->least_us ? moving_us : bucket->least_us;
}
