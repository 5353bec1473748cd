/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors to which rank 0 has given an id (Horovod's response cache). Pure.
 *
 * Rank 0 decides which tensors enter and which are evicted. These decisions are part of
 * the stream of decisions, so that the caches of all ranks are equal at each position of
 * the stream. A report from below may still name an id that this rank has evicted
 * already; therefore evicted tensors are kept until every child has seen the eviction. */
#ifndef HVD_RESPONSE_CACHE_H
#define HVD_RESPONSE_CACHE_H

#include "collectives/agreement/hash_table.h"

struct hvd_named_tensor;
struct hvd_descriptor;
struct hvd_replay_batch;
struct hvd_tensor_table;

struct hvd_cached_tensor {
    uint64_t id;
    struct hvd_key key;
    /* owned; the first dimension of an allgather's tensor means nothing */
    struct hvd_descriptor *descriptor;
    int64_t bytes; /* of one rank's tensor */
    /* this rank's tensor of that name; NULL when evicted */
    struct hvd_named_tensor *tensor;
    int uses; /* references that keep it in memory after its eviction */
    bool is_leaving; /* rank 0: its eviction has been decided */
    bool is_evicted;
    uint64_t evicted_at; /* position of the message that evicted it (relay.h) */
    /* the next batch of the replay that contains it, or NULL */
    struct hvd_replay_batch *replayed;
    uint64_t replayed_at; /* position of the message that began the last replay with it */
    /* These five for period.h, in its words: noted_at is the number of its last note (0:
     * none), cycle is that note's cycle, and in_cycle counts its notes in that cycle. In
     * guess number `guess`, a cycle has the tensor in_guess times. */
    uint64_t noted_at;
    uint64_t cycle;
    uint64_t guess;
    uint32_t in_cycle;
    uint32_t in_guess;
    /* neighbours in the order of last use; for evicted tensors, in the order of
     * eviction */
    struct hvd_cached_tensor *older;
    struct hvd_cached_tensor *newer;
};

struct hvd_response_cache {
    /* borrowed; has the names of cached tensors, among others */
    struct hvd_tensor_table *names;
    struct hvd_hash_table by_id; /* all tensors, evicted ones too */
    struct hvd_cached_tensor *newest;
    struct hvd_cached_tensor *oldest;
    struct hvd_cached_tensor *first_evicted;
    struct hvd_cached_tensor *last_evicted;
    size_t count; /* without evicted tensors */
};

void hvd_response_cache_init(struct hvd_response_cache *set,
                             struct hvd_tensor_table *names);
void hvd_response_cache_finish(struct hvd_response_cache *set);

/* Return a tensor, borrowed until it is forgotten, or NULL. find does not return evicted
 * ones. */
struct hvd_cached_tensor *hvd_response_cache_find(const struct hvd_response_cache *set,
                                                  const struct hvd_key *key);
struct hvd_cached_tensor *hvd_response_cache_by_id(const struct hvd_response_cache *set,
                                                   uint64_t id);

/* Adds a tensor, whose key must not be in the cache; the descriptor is copied. Returns
 * NULL if memory is out. */
struct hvd_cached_tensor *hvd_response_cache_add(struct hvd_response_cache *set,
                                                 uint64_t id,
                                                 const struct hvd_descriptor *descriptor);

/* Makes the tensor the one that was used last. */
void hvd_response_cache_touch(struct hvd_response_cache *set,
                              struct hvd_cached_tensor *cached);

/* Evicts the tensor. position: that of the message of decisions that evicts it
 * (relay.h). */
void hvd_response_cache_evict(struct hvd_response_cache *set,
                              struct hvd_cached_tensor *cached, uint64_t position);

/* Frees the evicted tensors that are not in use and whose eviction all ranks below have
 * seen: those evicted up to this position. */
void hvd_response_cache_forget(struct hvd_response_cache *set, uint64_t position);

#endif
