/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 decides: takes the tensors that all ranks have, and writes decisions about them
 * into the next message down the tree (relay.h). Pure. One thread at a time.
 *
 *   batches   the tensors that are ready, fused as fusion.h says
 *   ids       a tensor that was described in full gets one; to make room in the cache,
 *             the least recently used tensor is evicted
 *   replays   when the job repeats itself, its batches are announced once and no longer
 *             decided (replay_decisions.h)
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

struct hvd_coordinator;
struct hvd_decision_writers;
struct hvd_replay_decisions;
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

int hvd_coordinator_create(const struct hvd_coordinator_config *config,
                           struct hvd_coordinator **out, struct hvd_error *err);
void hvd_coordinator_destroy(struct hvd_coordinator *coordinator); /* NULL is fine */

/* --- messages --- */

/* Takes over the complete tensors of the ready table, to decide on them. While a set
 * other than the global one has a replay in force, its tensors are kept until the replay
 * has ended. */
int hvd_coordinator_admit(struct hvd_coordinator *coordinator, int64_t now_ns);

/* Takes note that a rank has joined. */
void hvd_coordinator_join(struct hvd_coordinator *coordinator, int rank);

/* Whether there is anything to admit, to decide on or to send. */
bool hvd_coordinator_has_work(const struct hvd_coordinator *coordinator);

/* Decides on the ready tensors if that is due. The deadline is when it becomes due if
 * nothing else happens; -1: never. */
void hvd_coordinator_decide(struct hvd_coordinator *coordinator, bool is_waited,
                            int64_t now_ns);
int64_t hvd_coordinator_deadline(const struct hvd_coordinator *coordinator);

/* To be called when the last message has been carried out: decides on tensors that did
 * not fit into it, or announces replays. */
int hvd_coordinator_continue(struct hvd_coordinator *coordinator, int64_t now_ns);

/* Returns the writers of the next message, for decisions that other files make. */
struct hvd_decision_writers *hvd_coordinator_writers(struct hvd_coordinator *coordinator);

/* Whether there is a message to send. make_message appends the message to `out`, as
 * number `position`. */
bool hvd_coordinator_has_message(const struct hvd_coordinator *coordinator);
int hvd_coordinator_make_message(struct hvd_coordinator *coordinator, uint64_t position,
                                 struct hvd_writer *out);

/* Decides that all ranks fuse by these settings from now on. Replays in force end. */
int hvd_coordinator_tune(struct hvd_coordinator *coordinator, int64_t threshold,
                         int64_t cycle_ns);

/* Drops the ready tensors of a set that has been aborted. */
void hvd_coordinator_drop_set(struct hvd_coordinator *coordinator,
                              const struct hvd_set *set);

/* --- replays --- */

/* Returns the part that decides on replays. */
struct hvd_replay_decisions *hvd_coordinator_replays(struct hvd_coordinator *coordinator);

/* To be called when a replay has begun: drops its ready tensors, because they belong to
 * its first cycle now. */
void hvd_coordinator_drop_replayed(struct hvd_coordinator *coordinator);

/* To be called when the set's replay has ended on all ranks: decides on the tensors that
 * were kept. started: the number of batches that all ranks have started. */
int hvd_coordinator_end_replay(struct hvd_coordinator *coordinator, int set,
                               uint64_t started, int64_t now_ns);

#endif
