/* SPDX-License-Identifier: Apache-2.0 */
/* Replays: batches that repeat, which every rank starts without messages. Each process
 * set has a replay of its own.
 *
 * Rank 0 has seen the same tensors again and again (period.h), and announces their
 * batches. From then on, each queue runs its batches in turn, over and over: a rank
 * starts one as soon as it has all its tensors and the previous one is done. Only
 * reductions are replayed. None of them can end before every rank has started it, so that
 * in each queue ranks are at most one batch apart.
 *
 * A replay ends when its prediction may be wrong: a rank joins or leaves, describes a
 * tensor anew, or waits for a tensor whose batch lacks others (because the order differs,
 * or a tensor does not come).
 *
 *   any rank   BREAK up
 *   rank 0     BREAK down: start no more batches, and pause the queues
 *   all        FROZEN up, merged on the way: the least and the most batches that any rank
 *              has started, per queue
 *   rank 0     RESUME down, with the result; from here on, tensors are reported again
 *
 * A batch that only some ranks have started is cancelled. No rank has results yet,
 * because a reduction needs all ranks. The ranks that have started it replace their
 * tensors by zeros, and the others start it with zeros, so that it leaves the queues; its
 * tensors are reported like all others. (This is rare, and simpler than to undo work in
 * shared memory and on the network.)
 *
 * Sets other than the global one
 *   "All ranks" are the members. The nodes of the tree between them and rank 0 pass
 *   FROZEN on, and start nothing. Decisions travel in the part of the set (relay.h):
 *   replays, queues and pauses of other sets are not disturbed when a replay breaks.
 *
 *   Such a set has one team where the global set has three, and its batches must run in
 *   one order on all members. So its replay has one queue, and nothing else is decided
 *   about the set while the replay is in force: rank 0 keeps the tensors that become
 *   ready, ends the replay, and decides on them after RESUME. By then, every member has
 *   given its team the same number of replayed batches. Batches decided before REPLAY ran
 *   before the first of them, and rank 0 announces no replay while a tensor of the set is
 *   ready and undecided. A set that also runs batches that cannot be replayed would break
 *   its replay in each step; therefore each such batch restarts the search for a period.
 *
 *   Joins and the SPARE queue exist in the global set only.
 *
 *   A member that removes the set ends the replay first, and reports the removal when the
 *   last batch has ended, cancelled batches included: RESUME may start one on a member
 *   that is otherwise done. If REPLAY comes down after all members have reported the
 *   removal, each drops the replay at once: no member has started a batch. BREAK, FROZEN
 *   and RESUME of the replay may arrive later, when another set may have the number.
 *   Replays are numbered across all sets, and messages about a replay that is not the
 *   set's own are ignored.
 *
 *   ASK (stall_inspector.h) ends the replay of the global set only. It need not end the
 *   others, because a rank answers from its list of entries, which also has the tensors
 *   that wait for a replay.
 *
 *   The tensors of a replay are not evicted. Rank 0, which need not be a member, does not
 *   see whether a set still uses its replay. Therefore the replays of all these sets
 *   together may have at most half as many tensors as the cache.
 *
 * Messages: REPLAY (count: batches, id: replay), followed by each batch's queue, number
 * of tensors, and ids. BREAK (id: replay), up: followed by the set. FROZEN (id: replay):
 * the set, then least and most per queue. RESUME (id: replay): least and most per queue.
 */
#ifndef HVD_REPLAY_H
#define HVD_REPLAY_H

#include "collectives/request/batch.h"

struct hvd_agreement;
struct hvd_cached_tensor;
struct hvd_reader;
struct hvd_record;
struct hvd_set;

enum {
    HVD_REPLAY_PRIORITIES = 2 /* QUICK and BULK */
};

struct hvd_replay_tensor {
    struct hvd_cached_tensor *cached;
    /* the next batch that contains the tensor; may be this one */
    struct hvd_replay_batch *next;
};

struct hvd_replay_batch {
    enum hvd_priority priority;
    struct hvd_replay_tensor *tensors; /* [count] */
    size_t count;
    size_t missing; /* tensors that this rank has not submitted yet */
    size_t anew; /* tensors that this rank has submitted with another descriptor */
    /* kept between runs for the next run; NULL before the first run, and during a run */
    struct hvd_batch *idle;
};

struct hvd_replay_priority {
    struct hvd_replay_batch **batches; /* [count], run in turn */
    size_t count;
    uint64_t started;
    struct hvd_batch *running;
};

/* The batches of a replay. They are distributed over queues, each of which runs its
 * batches in turn. */
struct hvd_replay_order {
    struct hvd_replay_batch *batches; /* [count] */
    size_t count;
    size_t tensors; /* of all batches */
    struct hvd_replay_priority priorities[HVD_REPLAY_PRIORITIES];
};

/* The replay of a process set, whether one is in force or not. */
struct hvd_replay {
    struct hvd_set *set; /* this rank need not be a member; members may be below it */
    /* FROZEN messages to wait for: from this rank, and from each child with members in
     * its branch */
    int answers;
    /* batches of the set, replayed or not, that have not ended on this rank */
    int running;
    uint64_t epoch; /* number of the set's last replay, unique across sets; 0: none yet */
    uint64_t begun_at; /* position of the message that began it (relay.h) */
    bool is_active; /* from REPLAY to RESUME */
    bool is_frozen; /* from BREAK to RESUME */
    bool wants_break; /* this rank or one below it has asked for the end */
    /* tensors that this rank has submitted for batches that have not started */
    size_t waiting;
    struct hvd_replay_order order;
    /* While frozen: how many have answered, and their merged answers */
    int answered;
    uint64_t least[HVD_REPLAY_PRIORITIES];
    uint64_t most[HVD_REPLAY_PRIORITIES];
};

struct hvd_replays {
    size_t waiting; /* the sum over all replays */
    int64_t last_look_ns; /* when hvd_replays_look last ran */
};

/* --- process sets, from their creation to their removal --- */
int hvd_replay_add(struct hvd_agreement *agreement, struct hvd_set *set);
void hvd_replay_remove(struct hvd_agreement *agreement, struct hvd_set *set);
void hvd_replays_finish(struct hvd_agreement *agreement);

/* Returns the replay of the set with this number; NULL: there is no such set. */
struct hvd_replay *hvd_replay_of(const struct hvd_agreement *agreement, int set);

/* --- batches --- */
/* Handles an entry of this rank whose name is that of a tensor of the replay. */
int hvd_replay_submit(struct hvd_agreement *agreement, struct hvd_replay *replay,
                      struct hvd_entry *entry);

/* Queues the event that runs a batch of the set, replayed or not. */
void hvd_replay_run(struct hvd_agreement *agreement, struct hvd_batch *batch);

/* Returns how many batches of the replay this rank has started. */
uint64_t hvd_replay_started(const struct hvd_replay *replay);

/* To be called when a batch of the set, replayed or not, has run and its entries have
 * ended. Takes the batch over, and starts the next one of its queue. */
int hvd_replay_finish_batch(struct hvd_agreement *agreement, struct hvd_batch *batch);

/* Asks for the end of replays in which a tensor of this rank has waited too long for the
 * other tensors of its batch. The time limit is lower if a thread waits for the tensor,
 * or with is_hurried. */
int hvd_replays_look(struct hvd_agreement *agreement, bool is_hurried, int64_t now_ns);

/* Returns when to call hvd_replays_look; -1: never. */
int64_t hvd_replays_deadline(const struct hvd_agreement *agreement, bool is_waited,
                             int64_t now_ns);

/* --- decisions; the caller has already read the record; replay is NULL if the set has
 * been removed --- */
int hvd_replay_begin(struct hvd_agreement *agreement, struct hvd_replay *replay,
                     const struct hvd_record *record, struct hvd_reader *reader);
int hvd_replay_freeze(struct hvd_agreement *agreement, struct hvd_replay *replay,
                      uint64_t epoch);
int hvd_replay_resume(struct hvd_agreement *agreement, struct hvd_replay *replay,
                      const struct hvd_record *record, struct hvd_reader *reader,
                      int64_t now_ns);

/* --- the end --- */
/* Asks rank 0 to end the replay. was_wrong: this rank submits something that the replay
 * did not predict. */
int hvd_replay_ask_break(struct hvd_agreement *agreement, struct hvd_replay *replay,
                         bool was_wrong);

/* Handle a branch's reports BREAK and FROZEN. */
int hvd_replay_take_break(struct hvd_agreement *agreement,
                          const struct hvd_record *record, struct hvd_reader *reader);
int hvd_replay_take_frozen(struct hvd_agreement *agreement,
                           const struct hvd_record *record, struct hvd_reader *reader);

#endif
