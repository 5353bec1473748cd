/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors that rank 0 has given an id (Horovod's response cache). Pure.
 *
 * Rank 0 decides who comes in and who is evicted, in the stream of decisions, so that all ranks
 * know the same at the same place of the stream. A report from below may still name an id
 * that is evicted here already: evicted ones are kept until every child has seen the
 * eviction. */
#ifndef HVD_KNOWN_H
#define HVD_KNOWN_H

#include "collectives/agreement/message.h"
#include "collectives/agreement/table.h"

struct hvd_entry;

struct hvd_known {
    uint64_t id;
    struct hvd_key key;
    struct hvd_proposal *proposal; /* owned; the rows of an allgather mean nothing */
    int64_t bytes; /* of a rank's tensor */
    struct hvd_entry *mine; /* this rank's tensor of that name under way, or NULL */
    int uses; /* by those who hold a pointer beyond the next eviction */
    bool is_leaving; /* rank 0: its eviction has been decided */
    bool is_evicted;
    uint64_t evicted_at; /* decision messages seen then */
    struct hvd_plan_batch *planned; /* the planned batch that has it next, or NULL */
    uint64_t planned_at; /* decision messages seen when it was last planned */
    /* forecast.h: when it was last noted (0: never), in which cycle, how often there, and how
     * often a cycle has it by the guess with this number. */
    uint64_t noted_at;
    uint64_t cycle;
    uint64_t guess;
    uint32_t in_cycle;
    uint32_t in_guess;
    struct hvd_known *older; /* by last use; of evicted ones: the next evicted */
    struct hvd_known *newer;
};

struct hvd_known_set {
    struct hvd_table by_key; /* those not evicted */
    struct hvd_table by_id; /* all */
    struct hvd_known *newest;
    struct hvd_known *oldest;
    struct hvd_known *first_evicted;
    struct hvd_known *last_evicted;
    size_t count; /* not evicted */
};

void hvd_known_finish(struct hvd_known_set *set); /* zeroed is fine */

/* Borrowed until it is forgotten; NULL when there is none. find: not evicted ones. */
struct hvd_known *hvd_known_find(const struct hvd_known_set *set,
                                 const struct hvd_key *key);
struct hvd_known *hvd_known_by_id(const struct hvd_known_set *set, uint64_t id);

/* Adds a tensor (copied) whose key is not known. NULL without memory. */
struct hvd_known *hvd_known_add(struct hvd_known_set *set, uint64_t id,
                                const struct hvd_proposal *proposal);

/* Makes it the one that was used last. */
void hvd_known_touch(struct hvd_known_set *set, struct hvd_known *known);

/* position: decision messages seen. */
void hvd_known_evict(struct hvd_known_set *set, struct hvd_known *known,
                     uint64_t position);

/* Frees evicted ones that nobody uses and that everybody below has seen evicted. */
void hvd_known_forget(struct hvd_known_set *set, uint64_t position);

#endif
