/* SPDX-License-Identifier: Apache-2.0 */
/* What this rank knows by process set and name: a tensor (or join, barrier, change of
 * process sets) that it has in flight, of which there is at most one a name, and the
 * tensor of that name in the cache. A name is known while either is there; so there are
 * as many as the cache may hold, and those in flight. A submission looks its name up
 * once, and keeps what it found (entry->tensor).
 *
 * In order of their submission it has the entries that the agreement has seen.
 *
 * Threads: add and let_go by any. All others by one at a time, under the progress lock. */
#ifndef HVD_TENSOR_TABLE_H
#define HVD_TENSOR_TABLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "collectives/agreement/hash_table.h"
#include "collectives/request/request.h"

struct hvd_cached_tensor;

struct hvd_named_tensor {
    struct hvd_key key; /* of the name below */
    _Atomic bool is_taken; /* by an entry, from its submission to its end */
    /* Entries of persistent requests, in flight or not. Changes under the lock, as does
     * the next. */
    int keepers;
    bool is_left; /* in the table's list of those left */
    struct hvd_named_tensor *next_left;
    struct hvd_entry *entry; /* the one in flight that the agreement has seen, or NULL */
    struct hvd_cached_tensor *cached; /* not evicted; or NULL. Changes under the lock */
    char name[];
};

/* The entry has ended; it is not in flight any more, and nothing touches it. */
typedef void (*hvd_entry_ended)(void *context, struct hvd_entry *entry, int status,
                                const char *text);

struct hvd_tensor_table {
    pthread_mutex_t lock; /* of by_name; held for a few instructions */
    struct hvd_hash_table by_name;
    /* Names that other threads have left, to be removed by the one that may be looking at
     * them. */
    struct hvd_named_tensor *left;
    _Atomic bool has_left;
    struct hvd_entry *oldest; /* that the agreement has seen */
    struct hvd_entry *newest;
    int removals; /* of process sets, among these */
    int calls; /* tensors of numbered calls, likewise */
    hvd_entry_ended ended;
    void *context; /* of ended */
};

void hvd_tensor_table_init(struct hvd_tensor_table *table, hvd_entry_ended ended,
                           void *context);
void hvd_tensor_table_finish(struct hvd_tensor_table *table);

/* Takes all entries of a request (borrowed until they end), or none: then why,
 * HVD_ERR_ARG for a name that is in flight. Names of a persistent request are looked up
 * once. */
int hvd_tensor_table_add(struct hvd_tensor_table *table, struct hvd_request *request,
                         struct hvd_error *err);

/* A persistent request, which is not in flight, is about to be freed. */
void hvd_tensor_table_let_go(struct hvd_tensor_table *table, struct hvd_request *request);

/* What is known by a name, or NULL. */
struct hvd_named_tensor *hvd_tensor_table_find(struct hvd_tensor_table *table,
                                               const struct hvd_key *key);

/* The name is that of a tensor in the cache from now on, and (uncache) no more. Returns
 * what is known by the name; NULL without memory. */
struct hvd_named_tensor *hvd_tensor_table_cache(struct hvd_tensor_table *table,
                                                const struct hvd_key *key,
                                                struct hvd_cached_tensor *cached);
void hvd_tensor_table_uncache(struct hvd_tensor_table *table,
                              struct hvd_named_tensor *tensor);

/* The agreement sees an entry that was added. */
void hvd_tensor_table_enter(struct hvd_tensor_table *table, struct hvd_entry *entry);

/* Ends an entry, whether the agreement has seen it or not. */
void hvd_tensor_table_end(struct hvd_tensor_table *table, struct hvd_entry *entry,
                          int status, const char *text);

#endif
