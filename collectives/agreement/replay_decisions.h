/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 decides on replays, for the coordinator: it looks for a period in the batches of
 * each process set (period.h), announces the batches of the period as a replay, and
 * breaks the replay when its prediction may be wrong (replay.h). Pure. One thread at a
 * time. */
#ifndef HVD_REPLAY_DECISIONS_H
#define HVD_REPLAY_DECISIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hvd_cached_tensor;
struct hvd_decision_writers;
struct hvd_fusion;
struct hvd_fusion_queue;
struct hvd_ready_table;
struct hvd_ready_tensor;
struct hvd_set_replays;

/* A batch that rank 0 has decided on and carried out. */
struct hvd_decided_batch {
    int set;
    /* [count]; NULL for a tensor that is not in the cache */
    struct hvd_cached_tensor *const *tensors;
    size_t count;
    int64_t bytes;
    bool may_repeat; /* a replay may contain it */
    bool is_spare; /* it was decided on beside a replay, for the SPARE queue */
    bool overlaps; /* rank 0 still runs another batch of the set */
    uint64_t replayed; /* batches that rank 0 has started in the set's present replay */
    int64_t now_ns;
};

/* The owner sets the first members up to may_replay, and all others to 0. */
struct hvd_replay_decisions {
    struct hvd_ready_table *table; /* borrowed */
    const struct hvd_fusion *fusion; /* borrowed; may change between calls */
    struct hvd_decision_writers *writers; /* the next message; borrowed */
    bool may_replay;
    struct hvd_set_replays **of_set; /* [set_count] by set; NULL: no such set */
    int set_count;
    uint64_t announced; /* number of the last replay */
    uint64_t breaks; /* number of replays that have been broken */
    size_t set_tensors; /* tensors in the replays of all sets but the global one */
    struct hvd_set_replays *noted; /* sets whose periods have changed */
};

void hvd_replay_decisions_finish(struct hvd_replay_decisions *decisions);

/* Add and remove the state of a process set. remove_set does nothing if there is none. */
int hvd_replay_decisions_add_set(struct hvd_replay_decisions *decisions, int set);
void hvd_replay_decisions_remove_set(struct hvd_replay_decisions *decisions, int set);

/* --- their beginning --- */

/* note adds a batch that has been carried out to the search for a period. */
int hvd_replay_decisions_note(struct hvd_replay_decisions *decisions,
                              const struct hvd_decided_batch *batch);
void hvd_replay_decisions_note_eviction(struct hvd_replay_decisions *decisions,
                                        const struct hvd_cached_tensor *cached);

/* Restarts the search for a period of the set. */
void hvd_replay_decisions_restart(struct hvd_replay_decisions *decisions, int set);

/* Announces the replays that are due. ready: the tensors to be decided on. */
int hvd_replay_decisions_put_due(struct hvd_replay_decisions *decisions,
                                 const struct hvd_fusion_queue *ready);

/* Whether a replay of the set is in force. */
bool hvd_replay_decisions_is_replaying(const struct hvd_replay_decisions *decisions,
                                       int set);

/* --- their end --- */

/* Whether a ready tensor has to wait for the end of a replay. The removal of a set does
 * not wait: it ends the replay itself. */
bool hvd_replay_decisions_must_keep(const struct hvd_replay_decisions *decisions,
                                    const struct hvd_ready_tensor *ready_tensor);

/* Takes over a tensor for which must_keep returned true, and breaks the replay. */
int hvd_replay_decisions_keep(struct hvd_replay_decisions *decisions,
                              struct hvd_ready_tensor *ready_tensor);

/* Ends the set's replay, if one is in force. was_wrong: the ranks submit something that
 * the replay did not predict. */
int hvd_replay_decisions_break(struct hvd_replay_decisions *decisions, int set,
                               bool was_wrong);

/* Breaks all replays. restarts: also restarts the search for all periods. Returns whether
 * any replay is in force. */
bool hvd_replay_decisions_break_all(struct hvd_replay_decisions *decisions, bool restarts,
                                    int *status);

/* Announces no replay any more, and breaks those in force. Returns true once none is in
 * force. */
bool hvd_replay_decisions_settle(struct hvd_replay_decisions *decisions, int *status);

/* The set's replay has ended on all ranks, which have started this many of its batches:
 * returns the tensors that were kept, which the caller takes over, linked by next. */
struct hvd_ready_tensor *
hvd_replay_decisions_end_replay(struct hvd_replay_decisions *decisions, int set,
                                uint64_t started);

/* Returns how many replays have been broken; for statistics. */
uint64_t hvd_replay_decisions_breaks(const struct hvd_replay_decisions *decisions);

#endif
