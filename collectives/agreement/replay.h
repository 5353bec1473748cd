/* SPDX-License-Identifier: Apache-2.0 */
/* Replays: batches that repeat, which every rank starts without asking. Each process set
 * has its own.
 *
 * Rank 0 has seen the same tensors again and again (period.h) and announces their
 * batches. From there on each queue runs its batches in turn, for ever: a rank starts one
 * as soon as it has all its tensors and the one before is done. Only reductions are
 * replayed: none of them can end before every rank has started it, so that in each queue
 * ranks are at most one batch apart.
 *
 * What cannot be foretold ends the replay: a rank joins or leaves, describes a tensor
 * anew, or waits for a tensor whose batch lacks others (another order, a tensor that does
 * not come).
 *
 *   any rank   BREAK up
 *   rank 0     BREAK down: start nothing more, let the queues pause
 *   all        FROZEN up, joined on the way: the least and most batches started, per queue
 *   rank 0     RESUME down, with the result. From here on tensors are reported again.
 *
 * A batch that some have started and some have not is cancelled: no rank has results yet,
 * for that takes all ranks. Those who have started it take their tensors back, those who
 * have not start it with zeros, so that it runs out of the queue; its tensors are
 * reported like all others. (Simpler than to undo what is already in shared memory and on
 * the way; it is rare.)
 *
 * A further set
 *   "All ranks" are its members; the nodes of the tree between them and rank 0 pass FROZEN on,
 *   and start nothing. Decisions travel in the part of the set (relay.h), so that a replay
 *   that breaks disturbs no other set: their replays, queues and pauses are their own.
 *
 *   It has one team where the global set has three, and its batches must come in one order on all
 *   members. So its replay has one queue, and nothing else is decided about the set while the replay is
 *   in force: rank 0 keeps what gets ready, ends the replay, and decides after RESUME. By then
 *   every member has given its team all replayed batches up to the most, and no further ones. What was
 *   decided before REPLAY came before the first of them, and rank 0 announces no replay while a
 *   tensor of the set is ready and not decided. A set that also does what cannot be replayed would
 *   break its replay in each step: rank 0 starts to look for a period anew at each such batch.
 *
 *   Joins concern the global set alone; so does the SPARE queue.
 *
 *   A member that removes the set ends the replay first, and reports the removal when the last batch
 *   has ended, cancelled ones among them: RESUME may start one on a member that is otherwise done. If
 *   REPLAY crosses the reports of all members, each drops the replay where it stands: no member has
 *   started a batch. BREAK, FROZEN and RESUME of it may still be in flight: replays are numbered
 *   across all sets, and a number that is not that of the set's replay is ignored. The set's number
 *   may be another set's by then.
 *
 *   ASK ends the replay of the global set only. What waits for any replay is in its rank's list of
 *   entries, which the answer is made of.
 *
 *   Tensors that are replayed are not evicted, and rank 0, which need not be a member, does not see
 *   whether a set still uses its replay. So all replays of further sets together may have half as many
 *   tensors as the cache.
 *
 * Messages: REPLAY (count: batches, id: replay): each batch's queue, number of tensors,
 * ids. BREAK (id: replay), up: then the set. FROZEN (id: replay): the set, then least and
 * most per queue. RESUME (id: replay): least and most per queue. */
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
    struct hvd_replay_batch *next; /* that has it after this one; may be this one */
};

struct hvd_replay_batch {
    enum hvd_priority priority;
    struct hvd_replay_tensor *tensors; /* [count] */
    size_t count;
    size_t missing; /* of them this rank has not submitted */
    size_t anew; /* of them it has described differently */
    /* to run it as; NULL before its first time, and while it runs */
    struct hvd_batch *idle;
};

struct hvd_replay_priority {
    struct hvd_replay_batch **batches; /* [count], to run in turn */
    size_t count;
    uint64_t started;
    struct hvd_batch *running;
};

/* Batches, dealt out to queues that run theirs in turn, and what each still lacks on this
 * rank. */
struct hvd_replay_order {
    struct hvd_replay_batch *batches; /* [count] */
    size_t count;
    size_t tensors; /* of all batches */
    struct hvd_replay_priority priorities[HVD_REPLAY_PRIORITIES];
};

/* Of one set, whether a replay is in force or not. */
struct hvd_replay {
    struct hvd_set *set; /* if this rank is no member, members may be below it */
    /* FROZEN awaited: of this rank and of the children whose branches have members */
    int answers;
    int running; /* batches of the set, replayed or not, that have not ended here */
    uint64_t epoch; /* counts replays of all sets; 0: there was none */
    uint64_t begun_at; /* decision messages seen then */
    bool is_active; /* from REPLAY to RESUME */
    bool is_frozen; /* from BREAK to RESUME */
    bool wants_break; /* this rank, or one below it, has asked */
    size_t waiting; /* tensors that this rank has submitted for batches not started yet */
    struct hvd_replay_order order;
    /* While frozen: how many have answered, and what they said. */
    int answered;
    uint64_t least[HVD_REPLAY_PRIORITIES];
    uint64_t most[HVD_REPLAY_PRIORITIES];
};

struct hvd_replays {
    size_t waiting; /* tensors of all replays that wait: see there */
    int64_t last_look_ns; /* for tensors that wait in vain */
};

/* --- sets, from when they are added to when they are removed --- */
int hvd_replay_add(struct hvd_agreement *agreement, struct hvd_set *set);
void hvd_replay_remove(struct hvd_agreement *agreement, struct hvd_set *set);
void hvd_replays_finish(struct hvd_agreement *agreement);

/* Of a set that is known by its number; NULL: there is no such set. */
struct hvd_replay *hvd_replay_of(const struct hvd_agreement *agreement, int set);

/* --- batches --- */
/* This rank has submitted an entry whose name is that of a tensor of the replay. */
int hvd_replay_submit(struct hvd_agreement *agreement, struct hvd_replay *replay,
                      struct hvd_entry *entry);

/* Gives a batch of the set, replayed or not, to what runs it. */
void hvd_replay_run(struct hvd_agreement *agreement, struct hvd_batch *batch);

/* Batches of the replay that this rank has started. */
uint64_t hvd_replay_started(const struct hvd_replay *replay);

/* A batch of the set, replayed or not, has run, and its entries have ended: takes it
 * over, and starts what comes after it. */
int hvd_replay_finish_batch(struct hvd_agreement *agreement, struct hvd_batch *batch);

/* Breaks replays for whose batches, which lack others, this rank has waited too long;
 * sooner when a thread asks for the tensor, or is_hurried. */
int hvd_replays_look(struct hvd_agreement *agreement, bool is_hurried, int64_t now_ns);

/* When to look; -1: never. */
int64_t hvd_replays_deadline(const struct hvd_agreement *agreement, bool is_waited,
                             int64_t now_ns);

/* --- decisions; the records have been taken already. replay: NULL, if the set is removed --- */
int hvd_replay_begin(struct hvd_agreement *agreement, struct hvd_replay *replay,
                     const struct hvd_record *record, struct hvd_reader *reader);
int hvd_replay_freeze(struct hvd_agreement *agreement, struct hvd_replay *replay,
                      uint64_t epoch);
int hvd_replay_resume(struct hvd_agreement *agreement, struct hvd_replay *replay,
                      const struct hvd_record *record, struct hvd_reader *reader,
                      int64_t now_ns);

/* --- the end --- */
/* Asks rank 0 to end the replay. was_wrong: it did not foretell what happens. */
int hvd_replay_ask_break(struct hvd_agreement *agreement, struct hvd_replay *replay,
                         bool was_wrong);

/* Reports of a branch. */
int hvd_replay_take_break(struct hvd_agreement *agreement,
                          const struct hvd_record *record, struct hvd_reader *reader);
int hvd_replay_take_frozen(struct hvd_agreement *agreement,
                           const struct hvd_record *record, struct hvd_reader *reader);

#endif
