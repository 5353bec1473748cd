/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 decides: tensors that all ranks have go in, and decisions come out, as the bytes
 * of the next message down the tree (relay.h). Pure. One thread at a time.
 *
 *   batches   the tensors that are ready, as fusion.h cuts them
 *   ids       a described tensor gets one; the least recently used one makes room for it
 *   replays   when the job repeats itself (period.h), its batches are announced and
 *             no longer decided; the replay ends when it may be wrong (replay.h)
 *   joins     end when all ranks have joined
 *
 * The files that know of process sets, calls and stalls write their decisions into the
 * same message. Rank 0 carries out its own message before it decides more. */
#ifndef HVD_COORDINATOR_H
#define HVD_COORDINATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/agreement/fusion.h"

struct hvd_cached_tensor;
struct hvd_coordinator;
struct hvd_decision_writers;
struct hvd_set;
struct hvd_response_cache;
struct hvd_writer;

/* All are borrowed. */
struct hvd_coordinator_config {
    struct hvd_ready_table *table;
    struct hvd_response_cache *cache;
    const struct hvd_fusion *fusion; /* may change between calls */
    bool may_replay;
};

/* A batch that rank 0 has decided on and carried out. */
struct hvd_decided_batch {
    int set;
    struct hvd_cached_tensor *const *tensors; /* [count]; NULL: not in the cache */
    size_t count;
    int64_t bytes;
    bool may_repeat; /* as part of a replay */
    bool overlaps; /* rank 0 still runs another batch of the set */
    uint64_t replayed; /* batches that rank 0 has started in the set's replay */
    int64_t now_ns;
};

int hvd_coordinator_create(const struct hvd_coordinator_config *config,
                           struct hvd_coordinator **out, struct hvd_error *err);
void hvd_coordinator_destroy(struct hvd_coordinator *coordinator); /* NULL is fine */

/* Process sets, from when they are added to when they are removed. */
int hvd_coordinator_add_set(struct hvd_coordinator *coordinator, int set);
void hvd_coordinator_remove_set(struct hvd_coordinator *coordinator, int set);

/* --- messages --- */

/* Takes over the complete tensors of the ready table: they are to be decided on, those of
 * a further set whose replay is in force after it. */
int hvd_coordinator_admit(struct hvd_coordinator *coordinator, int64_t now_ns);

/* A rank has joined. */
void hvd_coordinator_join(struct hvd_coordinator *coordinator, int rank);

/* Whether there is anything to admit, to decide on or to send. */
bool hvd_coordinator_has_work(const struct hvd_coordinator *coordinator);

/* Decides, if it is time. Deadline: when it is without further news; -1: never. */
void hvd_coordinator_decide(struct hvd_coordinator *coordinator, bool is_waited,
                            int64_t now_ns);
int64_t hvd_coordinator_deadline(const struct hvd_coordinator *coordinator);

/* Decides what follows from a message that has been carried out: the rest of a long one,
 * or replays. */
int hvd_coordinator_continue(struct hvd_coordinator *coordinator, int64_t now_ns);

/* Where other decisions of the next message are written. */
struct hvd_decision_writers *hvd_coordinator_writers(struct hvd_coordinator *coordinator);

/* Whether there is a message, and the message, number `position`, appended to out. */
bool hvd_coordinator_has_message(const struct hvd_coordinator *coordinator);
int hvd_coordinator_make_message(struct hvd_coordinator *coordinator, uint64_t position,
                                 struct hvd_writer *out);

/* All ranks fuse so from now on; replays that were made before end. */
int hvd_coordinator_tune(struct hvd_coordinator *coordinator, int64_t threshold,
                         int64_t cycle_ns);

/* The set has been aborted: its tensors that are ready are dropped. */
void hvd_coordinator_drop_set(struct hvd_coordinator *coordinator,
                              const struct hvd_set *set);

/* --- replays --- */

/* Looks for a period in the batches that are carried out. */
int hvd_coordinator_note(struct hvd_coordinator *coordinator,
                         const struct hvd_decided_batch *batch);
void hvd_coordinator_note_eviction(struct hvd_coordinator *coordinator,
                                   const struct hvd_cached_tensor *cached);

/* A replay has begun: what was ready of its tensors belongs to its first cycle. */
void hvd_coordinator_drop_replayed(struct hvd_coordinator *coordinator);

/* Ends the set's replay, if one is in force. was_wrong: it did not foretell what
 * happens. */
int hvd_coordinator_break(struct hvd_coordinator *coordinator, int set, bool was_wrong);

/* No replay from now on; returns true when none is in force, at once or later. */
bool hvd_coordinator_settle(struct hvd_coordinator *coordinator, int *status);

/* The set's replay has ended on all ranks. */
int hvd_coordinator_end_replay(struct hvd_coordinator *coordinator, int set,
                               int64_t now_ns);

/* Replays that have been broken, for figures. */
uint64_t hvd_coordinator_breaks(const struct hvd_coordinator *coordinator);

#endif
