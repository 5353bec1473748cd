/* SPDX-License-Identifier: Apache-2.0 */
/* The batches of a job, added up by their tensors. A batch of several tensors is what
 * frameworks call a bucket. Pure. */
#ifndef HVD_STRAGGLER_BUCKETS_H
#define HVD_STRAGGLER_BUCKETS_H

#include <stdint.h>

#include "collectives/request/descriptor.h"

enum {
    HVD_BUCKETS = 256, /* of more kinds of batches, the last one has all others */
    HVD_BUCKET_NAME = 80, /* bytes of a name, with the terminating zero */
};

/* Batches that have the same kind, number of tensors and first tensor. */
struct hvd_straggler_bucket {
    uint64_t key;
    char name[HVD_BUCKET_NAME]; /* of the first tensor */
    enum hvd_kind kind;
    int64_t tensors; /* in each batch */
    int64_t batches;
    int64_t bytes; /* sum of this rank's input */
    int64_t moving_us; /* sum of the times since the last rank arrived */
    int64_t least_us; /* shortest of these times */
    int64_t late_us; /* sum of the latenesses */
};

struct hvd_straggler_buckets {
    int count;
    struct hvd_straggler_bucket list[HVD_BUCKETS];
    int16_t slots[4 * HVD_BUCKETS]; /* hash table of index + 1; 0: empty */
};

/* Returns the index of the bucket of a batch, and counts the batch and its bytes. */
int hvd_straggler_buckets_count(struct hvd_straggler_buckets *buckets,
                                const struct hvd_straggler_bucket *batch);

/* Adds the times of a batch to a bucket. */
void hvd_straggler_buckets_add(struct hvd_straggler_buckets *buckets, int index,
                               int64_t moving_us, int64_t late_us);

#endif
