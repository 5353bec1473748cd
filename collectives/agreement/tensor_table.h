/* SPDX-License-Identifier: Apache-2.0 */
/* Maps process set and name to what this rank knows by that name: its entry in flight (a
 * tensor, join, barrier or change of process sets; at most one for each name), and the
 * tensor of that name in the response cache. A name is in the table as long as it has
 * either; so there are as many names as the cache may hold, plus those in flight. A
 * submission looks its name up once, and keeps the result (entry->tensor).
 *
 * The table also lists the entries that the agreement has seen, in the order of their
 * submission.
 *
 * Threads: add and let_go may be called by any thread; all other functions by one at a
 * time, under the progress lock. */
#ifndef HVD_TENSOR_TABLE_H
#define HVD_TENSOR_TABLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "collectives/agreement/hash_table.h"
#include "collectives/request/request.h"

struct hvd_cached_tensor;

struct hvd_named_tensor {
    struct hvd_key key; /* of the name below */
    /* an entry with this name has been submitted and has not ended */
    _Atomic bool is_taken;
    /* Number of entries of persistent requests, in flight or not. Changes under the lock,
     * like the next two members. */
    int keepers;
    bool is_left; /* in the table's list `left` */
    struct hvd_named_tensor *next_left;
    /* the entry in flight, once the agreement has seen it, or NULL */
    struct hvd_entry *entry;
    /* the tensor in the cache, or NULL; changes under the lock */
    struct hvd_cached_tensor *cached;
    char name[];
};

/* Called when an entry has ended; it is no longer in flight, and the table does not touch
 * it any more. */
typedef void (*hvd_entry_ended)(void *context, struct hvd_entry *entry, int status,
                                const char *text);

struct hvd_tensor_table {
    pthread_mutex_t lock; /* protects by_name; held for a few instructions */
    struct hvd_hash_table by_name;
    /* Names that other threads no longer need. hvd_tensor_table_enter removes them,
     * because its thread may be using them until then. */
    struct hvd_named_tensor *left;
    _Atomic bool has_left;
    struct hvd_entry *oldest; /* oldest entry that the agreement has seen */
    struct hvd_entry *newest;
    int removals; /* removals of process sets among these entries */
    int calls; /* tensors of numbered calls among these entries */
    hvd_entry_ended ended;
    void *context; /* of ended */
};

void hvd_tensor_table_init(struct hvd_tensor_table *table, hvd_entry_ended ended,
                           void *context);
void hvd_tensor_table_finish(struct hvd_tensor_table *table);

/* Takes over all entries of a request (borrowed until they end), or takes none and fills
 * err. Returns HVD_ERR_ARG for a name that is in flight. The names of a persistent
 * request are looked up only the first time. */
int hvd_tensor_table_add(struct hvd_tensor_table *table, struct hvd_request *request,
                         struct hvd_error *err);

/* Lets go of the names of a persistent request, which is about to be freed and not in
 * flight. */
void hvd_tensor_table_let_go(struct hvd_tensor_table *table, struct hvd_request *request);

/* Returns the table's record of a name, or NULL. */
struct hvd_named_tensor *hvd_tensor_table_find(struct hvd_tensor_table *table,
                                               const struct hvd_key *key);

/* cache links the name to its tensor in the response cache; uncache removes the link.
 * cache returns the table's record of the name, or NULL if memory is out. */
struct hvd_named_tensor *hvd_tensor_table_cache(struct hvd_tensor_table *table,
                                                const struct hvd_key *key,
                                                struct hvd_cached_tensor *cached);
void hvd_tensor_table_uncache(struct hvd_tensor_table *table,
                              struct hvd_named_tensor *tensor);

/* Appends an entry, which was added before, to the list of those that the agreement has
 * seen. */
void hvd_tensor_table_enter(struct hvd_tensor_table *table, struct hvd_entry *entry);

/* Ends an entry, whether the agreement has seen it or not. */
void hvd_tensor_table_end(struct hvd_tensor_table *table, struct hvd_entry *entry,
                          int status, const char *text);

#endif
