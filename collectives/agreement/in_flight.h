/* SPDX-License-Identifier: Apache-2.0 */
/* What this rank has in flight: its tensors, joins, barriers and changes of process sets, from their
 * submission to their end. The one place that knows them by process set and name, of which at most
 * one is in flight; and, in order, those that the agreement has seen.
 *
 * Threads: add by any. All others by one at a time (the engine's progress lock). */
#ifndef HVD_IN_FLIGHT_H
#define HVD_IN_FLIGHT_H

#include <pthread.h>

#include "collectives/agreement/hash_table.h"
#include "collectives/agreement/request.h"
#include "collectives/agreement/tensor_cache.h"

/* The entry has ended; it is not in flight any more, and nothing touches it. */
typedef void (*hvd_entry_ended)(void *context, struct hvd_entry *entry, int status,
                                const char *text);

struct hvd_in_flight {
    pthread_mutex_t lock; /* of by_key; held for a few instructions */
    struct hvd_hash_table by_key;
    struct hvd_entry *oldest; /* that the agreement has seen */
    struct hvd_entry *newest;
    int removals; /* of process sets, among these */
    hvd_entry_ended ended;
    void *context; /* of ended */
};

void hvd_in_flight_init(struct hvd_in_flight *in_flight, hvd_entry_ended ended,
                        void *context);
void hvd_in_flight_finish(struct hvd_in_flight *in_flight);

/* Gives all entries of a request their keys and takes them (borrowed until they end), or none: then
 * why, HVD_ERR_ARG for a name that is in flight. */
int hvd_in_flight_add(struct hvd_in_flight *in_flight, struct hvd_request *request,
                      struct hvd_error *err);

/* The agreement sees an entry that was added. cached: what it is described like, or NULL. */
void hvd_in_flight_enter(struct hvd_in_flight *in_flight, struct hvd_entry *entry,
                         struct hvd_cached_tensor *cached);

/* This rank's entry of a key that the agreement has seen, or NULL. cached: the tensor of that key
 * in the cache, or NULL. */
struct hvd_entry *hvd_in_flight_find(struct hvd_in_flight *in_flight,
                                     const struct hvd_cached_tensor *cached,
                                     const struct hvd_key *key);

/* The entry goes by the id of a tensor in the cache, or (unbind) by its description. */
void hvd_in_flight_bind(struct hvd_entry *entry, struct hvd_cached_tensor *cached);
void hvd_in_flight_unbind(struct hvd_entry *entry);

/* Ends an entry, whether the agreement has seen it or not. */
void hvd_in_flight_end(struct hvd_in_flight *in_flight, struct hvd_entry *entry,
                       int status, const char *text);

#endif
