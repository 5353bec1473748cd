/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 decides: takes the tensors that all ranks have, and writes decisions about them
 * into the next message down the tree (relay.h). Pure. One thread at a time.
 *
 *   batches   the tensors that are ready, fused as fusion.h says
 *   ids       a tensor that was described in full gets one; to make room in the cache,
 *             the least recently used tensor is evicted
 *   replays   when the job repeats itself (period.h), its batches are announced once and
 *             no longer decided; a replay ends when it may be wrong (replay.h)
 *   joins     end when all ranks have joined
 *
 * The files about process sets, calls and stalls write their decisions into the same
 * message. Rank 0 carries out its own message before it decides more. */
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
    /* [count]; NULL for a tensor that is not in the cache */
    struct hvd_cached_tensor *const *tensors;
    size_t count;
    int64_t bytes;
    bool may_repeat; /* a replay may contain it */
    bool overlaps; /* rank 0 still runs another batch of the set */
    uint64_t replayed; /* batches that rank 0 has started in the set's present replay */
    int64_t now_ns;
};

int hvd_coordinator_create(const struct hvd_coordinator_config *config,
                           struct hvd_coordinator **out, struct hvd_error *err);
void hvd_coordinator_destroy(struct hvd_coordinator *coordinator); /* NULL is fine */

/* Add and remove the coordinator's state of a process set. */
int hvd_coordinator_add_set(struct hvd_coordinator *coordinator, int set);
void hvd_coordinator_remove_set(struct hvd_coordinator *coordinator, int set);

/* --- messages --- */

/* Takes over the complete tensors of the ready table, to decide on them. While a set
 * other than the global one has a replay in force, its tensors are kept until the replay
 * has ended. */
int hvd_coordinator_admit(struct hvd_coordinator *coordinator, int64_t now_ns);

/* Takes note that a rank has joined. */
void hvd_coordinator_join(struct hvd_coordinator *coordinator, int rank);

/* Whether there is anything to admit, to decide on or to send. */
bool hvd_coordinator_has_work(const struct hvd_coordinator *coordinator);

/* Decides, if it is time to. The deadline is when it will be, if nothing else happens;
 * -1: never. */
void hvd_coordinator_decide(struct hvd_coordinator *coordinator, bool is_waited,
                            int64_t now_ns);
int64_t hvd_coordinator_deadline(const struct hvd_coordinator *coordinator);

/* Decides what follows from a message that has been carried out: the rest of a long one,
 * or replays. */
int hvd_coordinator_continue(struct hvd_coordinator *coordinator, int64_t now_ns);

/* Returns the writers of the next message, for decisions that other files make. */
struct hvd_decision_writers *hvd_coordinator_writers(struct hvd_coordinator *coordinator);

/* Whether there is a message to send. make_message appends it to out, with the number
 * `position`. */
bool hvd_coordinator_has_message(const struct hvd_coordinator *coordinator);
int hvd_coordinator_make_message(struct hvd_coordinator *coordinator, uint64_t position,
                                 struct hvd_writer *out);

/* All ranks fuse by these settings from now on. Replays in force end. */
int hvd_coordinator_tune(struct hvd_coordinator *coordinator, int64_t threshold,
                         int64_t cycle_ns);

/* The set has been aborted: drops its tensors that are ready. */
void hvd_coordinator_drop_set(struct hvd_coordinator *coordinator,
                              const struct hvd_set *set);

/* --- replays --- */

/* Look for a period: note takes each batch that is carried out. */
int hvd_coordinator_note(struct hvd_coordinator *coordinator,
                         const struct hvd_decided_batch *batch);
void hvd_coordinator_note_eviction(struct hvd_coordinator *coordinator,
                                   const struct hvd_cached_tensor *cached);

/* A replay has begun: drops those of its tensors that are ready, because they belong to
 * its first cycle now. */
void hvd_coordinator_drop_replayed(struct hvd_coordinator *coordinator);

/* Ends the set's replay, if one is in force. was_wrong: because it did not predict what
 * the ranks submit. */
int hvd_coordinator_break(struct hvd_coordinator *coordinator, int set, bool was_wrong);

/* Announces no replay any more, and breaks those in force. Returns true once none is in
 * force. */
bool hvd_coordinator_settle(struct hvd_coordinator *coordinator, int *status);

/* The set's replay has ended on all ranks: decides on the tensors that were kept. */
int hvd_coordinator_end_replay(struct hvd_coordinator *coordinator, int set,
                               int64_t now_ns);

/* Returns how many replays have been broken; for statistics. */
uint64_t hvd_coordinator_breaks(const struct hvd_coordinator *coordinator);

#endif
