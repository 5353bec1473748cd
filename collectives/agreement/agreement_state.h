/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the agreement share:
 *   agreement.c         life, submissions, progress      agreement_up.c    reports
 *   agreement_down.c    decisions                        replay.h  replayed batches
 *   agreement_batch.c   those about batches
 *   agreement_break.c   the end of a replay                agreement_stall.c ranks that wait
 *   agreement_pass.c    messages of decisions, and who gets which part */
#ifndef HVD_AGREEMENT_STATE_H
#define HVD_AGREEMENT_STATE_H

#include "collectives/agreement/replay.h"
#include "collectives/agreement/stalled.h"

/* Rank 0's questions about who holds what. */
struct hvd_stall {
    bool is_reported; /* this rank has said that it waits too long */
    int64_t next_ns; /* when to say so again */
    bool is_asking; /* rank 0: an ASK wave is under way */
    int64_t next_ask_ns; /* rank 0: not before */
    int64_t asked; /* rank 0: waves so far */
    int branches; /* that have answered */
    struct hvd_stalled held; /* what they said */
};

struct hvd_agreement {
    struct hvd_membership membership;
    struct hvd_agreement_settings settings;
    const struct hvd_agreement_ops *ops;
    void *context;
    int rank;

    struct hvd_tensor_cache cache;
    struct hvd_readiness_table readiness_table;
    struct hvd_hash_table unknown; /* own entries under way that are not cached->mine */
    struct hvd_entry *oldest; /* own entries under way */
    struct hvd_entry *newest;
    uint64_t position; /* number of the last decision message seen */
    uint64_t *seen_by; /* [branches] the same, by each child */
    uint64_t *sent_to; /* [branches] number of the last one that it was sent */
    int far_children; /* those on other nodes, branches 1 ... far_children */
    struct hvd_writer passed; /* what one of them is sent of a message */
    uint64_t said_position; /* in this rank's last message */

    struct hvd_writer up; /* records to send */
    struct hvd_id_range up_range;
    struct hvd_entry *join; /* this rank's, under way */
    struct hvd_entry *ended_join; /* over, but tensors submitted before it still run */
    bool is_join_deferred; /* until the replay has ended */
    int removals; /* of process sets, by this rank, under way */
    int deferred_removals; /* of them those that wait until this rank has done with the set */

    struct hvd_replays replays;
    struct hvd_stall stall;
    int64_t last_look_ns; /* for tensors that wait in vain */
    struct hvd_agreement_counts counts;

    /* rank 0 */
    struct hvd_coordinator *coordinator;
    struct hvd_writer down; /* decisions to send to all */
    struct hvd_writer set_down; /* and to the ranks of further sets */
    int last_joined;
    bool is_settling; /* no replay any more */
    bool has_more; /* decisions, for the next message */
};

static inline bool hvd_agreement_is_root(const struct hvd_agreement *agreement)
{
    return agreement->coordinator != NULL;
}

/* --- agreement.c --- */
/* This rank's entry under way for a key, or NULL. */
struct hvd_entry *hvd_agreement_entry(const struct hvd_agreement *agreement,
                                      const struct hvd_key *key);
void hvd_agreement_end_entry(struct hvd_agreement *agreement, struct hvd_entry *entry,
                             int status, const char *text);
/* Ends this rank's entries of a batch that has run, and frees the batch. */
void hvd_agreement_end_batch(struct hvd_agreement *agreement, struct hvd_batch *batch);
/* Ends a join that is over, once all that this rank runs since before it has ended. */
void hvd_agreement_end_join(struct hvd_agreement *agreement);
/* Moves an entry from the table of the unknown to cached->mine, or back. */
int hvd_agreement_bind(struct hvd_agreement *agreement, struct hvd_entry *entry,
                       struct hvd_cached_tensor *cached);
int hvd_agreement_unbind(struct hvd_agreement *agreement, struct hvd_entry *entry);

/* --- agreement_up.c --- */
/* Reports an entry of this rank the ordinary way. */
int hvd_agreement_report(struct hvd_agreement *agreement, struct hvd_entry *entry,
                         int64_t now_ns);
/* Adds this rank's report to the readiness record of its key. */
int hvd_agreement_report_own(struct hvd_agreement *agreement, const struct hvd_key *key,
                             const struct hvd_tensor_report *report, int64_t now_ns);
/* Passes complete readiness records up, or to the coordinator. */
int hvd_agreement_pass_up(struct hvd_agreement *agreement, int64_t now_ns);
/* Puts a bare record into the next message to the parent. */
void hvd_agreement_put_up(struct hvd_agreement *agreement, enum hvd_report_kind kind,
                          uint32_t count, uint64_t id);
int hvd_agreement_flush(struct hvd_agreement *agreement, bool *moved);
int hvd_agreement_note_join(struct hvd_agreement *agreement, int rank, int64_t now_ns);

/* --- agreement_batch.c --- */
int hvd_agreement_take_batch(struct hvd_agreement *agreement, struct hvd_reader *reader,
                             const struct hvd_record *record, int64_t now_ns);
/* Rank 0: a replay of this set would be of use now. */
bool hvd_agreement_may_plan(const struct hvd_agreement *agreement,
                            const struct hvd_replay *replay);

/* --- agreement_down.c --- */
/* Runs a batch, or does what it stands for. Takes it over. */
int hvd_agreement_carry_out(struct hvd_agreement *agreement, struct hvd_batch *batch);
int hvd_agreement_take_join_end(struct hvd_agreement *agreement,
                                const struct hvd_batch_header *header);
int hvd_agreement_decide(struct hvd_agreement *agreement, int64_t now_ns); /* rank 0 */
int hvd_agreement_send_decisions(struct hvd_agreement *agreement, int64_t now_ns);

/* Carries out what one part of a message says, which is about this set. */
int hvd_agreement_take_decisions(struct hvd_agreement *agreement, int set,
                                 struct hvd_reader *reader, int64_t now_ns);

/* --- agreement_pass.c --- */
int hvd_agreement_pass_down(struct hvd_agreement *agreement, const void *payload,
                            size_t bytes);
int hvd_agreement_take_message(struct hvd_agreement *agreement, const void *payload,
                               size_t bytes, int64_t now_ns);
/* Rank 0: there are decisions to send, and the message of them, which is to be passed down and
 * taken at once. */
bool hvd_agreement_has_decided(const struct hvd_agreement *agreement);
int hvd_agreement_make_message(struct hvd_agreement *agreement, struct hvd_writer *out);

/* --- replay.h --- */
/* What this rank knows about the replays of a set, from when it is added to when it is removed. */
int hvd_replay_add(struct hvd_agreement *agreement, int set);
void hvd_replay_remove(struct hvd_agreement *agreement, int set);
void hvd_replays_finish(struct hvd_agreement *agreement);
struct hvd_replay *hvd_replay_of(const struct hvd_agreement *agreement,
                                 int set); /* or NULL */
/* Gives a batch of the set, replayed or not, to those who run it. */
void hvd_replay_run(struct hvd_agreement *agreement, struct hvd_batch *batch);
/* Forgets what is replayed. */
void hvd_replay_end(struct hvd_agreement *agreement, struct hvd_replay *replay);
/* Rank 0: the repetition has seen another batch. */
int hvd_replay_note(struct hvd_agreement *agreement, struct hvd_replay *replay,
                    struct hvd_cached_tensor *const *tensors, size_t count,
                    const struct hvd_repeated_batch *batch);
/* Rank 0: announces what can be foretold now. */
int hvd_replay_put_due(struct hvd_agreement *agreement);
int hvd_replay_begin(struct hvd_agreement *agreement, int set, struct hvd_reader *reader,
                     const struct hvd_record *record);
/* An entry of a replayed tensor has been submitted. */
int hvd_replay_submit(struct hvd_agreement *agreement, struct hvd_entry *entry,
                      struct hvd_cached_tensor *cached);
/* Whether a tensor so described can take the place that is replayed for it. */
bool hvd_replay_fits(struct hvd_cached_tensor *cached,
                     const struct hvd_proposal *proposal);
/* Rank 0: so many tensors of the global set have been agreed upon beside the replay. */
int hvd_replay_note_others(struct hvd_agreement *agreement, struct hvd_replay *replay,
                           size_t tensors);
/* Rank 0: all have this tensor. Takes the readiness record over. */
int hvd_replay_admit(struct hvd_agreement *agreement, struct hvd_readiness *readiness,
                     int64_t now_ns);
int hvd_replay_release_held(struct hvd_agreement *agreement, struct hvd_replay *replay,
                            int64_t now_ns);
/* The batch of this rank's tensors, or of stand-ins. */
struct hvd_batch *hvd_replay_make_batch(const struct hvd_replay *replay,
                                        const struct hvd_replay_batch *replayed,
                                        bool is_void);

/* --- agreement_break.c --- */
/* Asks rank 0 to end the replay. was_wrong: it did not foretell what happens. */
int hvd_replay_ask_break(struct hvd_agreement *agreement, struct hvd_replay *replay,
                         bool was_wrong);
int hvd_replay_put_break(struct hvd_agreement *agreement,
                         struct hvd_replay *replay); /* rank 0 */
/* Reports of a branch. */
int hvd_replay_take_break(struct hvd_agreement *agreement,
                          const struct hvd_record *record, struct hvd_reader *reader);
int hvd_replay_take_frozen(struct hvd_agreement *agreement,
                           const struct hvd_record *record, struct hvd_reader *reader);
int hvd_replay_freeze(struct hvd_agreement *agreement, int set, uint64_t epoch);
int hvd_replay_resume(struct hvd_agreement *agreement, int set,
                      const struct hvd_record *record, struct hvd_reader *reader,
                      int64_t now_ns);
/* Breaks replays for whose batches, which lack others, this rank has waited too long; sooner when a
 * thread asks for the tensor. */
int hvd_replay_look(struct hvd_agreement *agreement, int64_t now_ns);

/* --- agreement_stall.c --- */
/* What this rank waits for longest, joins apart: ranks may have much more data than others. NULL:
 * nothing. */
const struct hvd_entry *hvd_stall_oldest(const struct hvd_agreement *agreement);
int hvd_stall_look(struct hvd_agreement *agreement, int64_t now_ns);
int hvd_stall_put_ask(struct hvd_agreement *agreement, int64_t now_ns); /* rank 0 */
int hvd_stall_answer(struct hvd_agreement *agreement, uint64_t wave, int64_t now_ns);
int hvd_stall_held(struct hvd_agreement *agreement, const void *data, size_t bytes);

#endif
