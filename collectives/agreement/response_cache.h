/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors that rank 0 has given an id (Horovod's response cache). Pure.
 *
 * Rank 0 decides who comes in and who is evicted, in the stream of decisions, so that all
 * ranks know the same at the same place of the stream. A report from below may still name
 * an id that is evicted here already: evicted ones are kept until every child has seen
 * the eviction. */
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
    struct hvd_descriptor *descriptor; /* owned; the rows of an allgather mean nothing */
    int64_t bytes; /* of a rank's tensor */
    struct hvd_named_tensor *tensor; /* this rank's, of that name; NULL when evicted */
    int uses; /* by those who hold a pointer beyond the next eviction */
    bool is_leaving; /* rank 0: its eviction has been decided */
    bool is_evicted;
    uint64_t evicted_at; /* decision messages seen then */
    struct hvd_replay_batch *replayed; /* the replayed batch that has it next, or NULL */
    uint64_t replayed_at; /* decision messages seen when it was last replayed */
    /* period.h: when it was last noted (0: never), in which cycle, how often there, and
     * how often a cycle has it by the guess with this number. */
    uint64_t noted_at;
    uint64_t cycle;
    uint64_t guess;
    uint32_t in_cycle;
    uint32_t in_guess;
    struct hvd_cached_tensor *older; /* by last use; of evicted ones: the next evicted */
    struct hvd_cached_tensor *newer;
};

struct hvd_response_cache {
    struct hvd_tensor_table *names; /* borrowed; of those not evicted, and others */
    struct hvd_hash_table by_id; /* all */
    struct hvd_cached_tensor *newest;
    struct hvd_cached_tensor *oldest;
    struct hvd_cached_tensor *first_evicted;
    struct hvd_cached_tensor *last_evicted;
    size_t count; /* not evicted */
};

void hvd_response_cache_init(struct hvd_response_cache *set,
                             struct hvd_tensor_table *names);
void hvd_response_cache_finish(struct hvd_response_cache *set);

/* Borrowed until it is forgotten; NULL when there is none. find: not evicted ones. */
struct hvd_cached_tensor *hvd_response_cache_find(const struct hvd_response_cache *set,
                                                  const struct hvd_key *key);
struct hvd_cached_tensor *hvd_response_cache_by_id(const struct hvd_response_cache *set,
                                                   uint64_t id);

/* Adds a tensor (copied) whose key is not in the cache. NULL without memory. */
struct hvd_cached_tensor *hvd_response_cache_add(struct hvd_response_cache *set,
                                                 uint64_t id,
                                                 const struct hvd_descriptor *descriptor);

/* Makes it the one that was used last. */
void hvd_response_cache_touch(struct hvd_response_cache *set,
                              struct hvd_cached_tensor *cached);

/* position: decision messages seen. */
void hvd_response_cache_evict(struct hvd_response_cache *set,
                              struct hvd_cached_tensor *cached, uint64_t position);

/* Frees evicted ones that nobody uses and that everybody below has seen evicted. */
void hvd_response_cache_forget(struct hvd_response_cache *set, uint64_t position);

#endif
