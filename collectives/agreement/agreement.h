/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks agree which tensors they run next, and in which order: one rank's part, as a
 * state machine without sockets, threads or clock, so that a thousand ranks can be tried in
 * one process.
 *
 *   not in the cache   described in full up the tree; rank 0 checks that all mean the same,
 *                      gives it an id and answers down the tree
 *   in the cache       its id goes up, a batch of ids comes down: O(log nodes) messages
 *   order repeats      no message at all: each rank starts the batches of the replay as soon as
 *                      it has their tensors (replay.h)
 *
 * Along the tree equal reports become one: a node hears of a tensor once from each child.
 *
 * Threads: one at a time (the engine's progress lock). Times are in ns of one monotonic clock.
 * Functions that return int return 0 or a status after which the job must end. */
#ifndef HVD_AGREEMENT_H
#define HVD_AGREEMENT_H

#include "collectives/request/batch.h"
#include "collectives/agreement/coordinator.h"
#include "collectives/agreement/membership.h"

struct hvd_agreement;
struct hvd_tensor_table;

enum {
    HVD_AGREEMENT_NODE = -1
};

struct hvd_agreement_settings {
    struct hvd_tensor_table *tensors; /* tensor_table.h; borrowed */
    struct hvd_fusion fusion;
    bool may_replay;
    int64_t stall_warning_ns; /* 0: never look for stalls */
    int64_t stall_shutdown_ns; /* 0: never end the job for one */
};

/* What an agreement does to its surroundings. Called from its functions only. */
struct hvd_agreement_ops {
    /* Copies the payload. Returns 0 or HVD_ERR_NOMEM. */
    int (*send_up)(void *context, const void *payload, size_t bytes);
    /* child: its index in the order of hvd_tree_children, of one on another node; or
     * HVD_AGREEMENT_NODE: all children on this node. */
    int (*send_down)(void *context, int child, const void *payload, size_t bytes);
    /* A message of decisions goes down, to some children at least. May be NULL. */
    void (*decided)(void *context);
    /* All ranks of its set run this batch, in this order of its lane or set. Takes over; when it
     * is done the caller calls hvd_agreement_finish. */
    void (*run)(void *context, struct hvd_batch *batch);
    /* What runs replayed batches of a set stands still until it is told to go on: the QUICK and BULK
     * lanes of the global set, the team of another. This rank is in the set. */
    void (*pause)(void *context, int set, bool is_paused);
    /* A batch that was given to run has new entries, all absent: the old ones are not touched any
     * more. Only while what runs it stands still. */
    void (*make_void)(void *context, struct hvd_batch *batch);
    /* All ranks have added a set, or its members have created one, of which ranks hear that are near to
     * them; 0 or why this rank cannot go on. */
    int (*add_set)(void *context, const struct hvd_set_members *set);
    void (*remove_set)(void *context, int set);
    /* A set, not the global one, has been aborted: nothing more is agreed on in it; reason is for users.
     * May be NULL. */
    void (*abort_set)(void *context, int set, const char *reason);
    /* Rank 0: the ranks of a branch (membership.h) have this tensor. May be NULL. */
    void (*heard)(void *context, const struct hvd_proposal *proposal, int branch);
    /* The host of a rank, for messages. */
    const char *(*host)(void *context, int rank);
    /* The stalled job is to end. silent: -1, rank 0 alone, and all ranks leave together; or a rank that
     * does not answer, which text says: then the agreement fails with HVD_ERR_PEER. */
    void (*give_up)(void *context, int silent, const char *text);
};

/* layout and the settings' values are copied or borrowed until destroy; the caller owns *out. */
int hvd_agreement_create(const struct hvd_layout *layout, int rank,
                         const struct hvd_agreement_settings *settings,
                         const struct hvd_agreement_ops *ops, void *context,
                         struct hvd_agreement **out, struct hvd_error *err);
void hvd_agreement_destroy(struct hvd_agreement *agreement); /* NULL is fine */

/* This rank has a tensor (or a join, a barrier, a process set) to run: an entry that has been added
 * to tensors, in the order of all of these. Its submitted_ns, when it is not 0, is when that was;
 * else it was now. What goes to the global process set between the start and the end of this
 * rank's join ends at once, with HVD_ERR_ARG, and disturbs no other rank. */
int hvd_agreement_submit(struct hvd_agreement *agreement, struct hvd_entry *entry,
                         int64_t now_ns);

/* A message of a branch (membership.h) or of the parent. */
int hvd_agreement_from_below(struct hvd_agreement *agreement, int branch,
                             const void *payload, size_t bytes, int64_t now_ns);
int hvd_agreement_from_above(struct hvd_agreement *agreement, const void *payload,
                             size_t bytes, int64_t now_ns);

/* Sends what has piled up, decides what is due. is_waited: a thread of this rank waits for a
 * request. *moved is set if anything was done. */
int hvd_agreement_progress(struct hvd_agreement *agreement, bool is_waited,
                           int64_t now_ns, bool *moved);

/* When progress has something to do although nothing has happened; -1: never. */
int64_t hvd_agreement_deadline(const struct hvd_agreement *agreement, bool is_waited,
                               int64_t now_ns);

/* The batch is done: ends its entries, now or when it is certain how. Takes it over. */
int hvd_agreement_finish(struct hvd_agreement *agreement, struct hvd_batch *batch);

/* Rank 0: no replay from now on; returns true when none is in force, at once or later. */
bool hvd_agreement_settle(struct hvd_agreement *agreement, int *status);

/* Ends every entry that is not in a batch that all ranks run. all: those too. */
void hvd_agreement_drop(struct hvd_agreement *agreement, bool all, int status,
                        const char *text);

const struct hvd_membership *
hvd_agreement_membership(const struct hvd_agreement *agreement);

/* Rank 0: from now on fuse so. The same on all ranks, by a decision; a replay that was made before
 * ends. */
int hvd_agreement_tune(struct hvd_agreement *agreement, int64_t threshold,
                       int64_t cycle_ns);

/* How tensors are fused on this rank now; borrowed. */
const struct hvd_fusion *hvd_agreement_fusion(const struct hvd_agreement *agreement);

/* A rank that has not let this one's complaints about a stall through for long, with a sentence; -1:
 * there is none. If others leave, it is the likely reason. */
int hvd_agreement_suspect(const struct hvd_agreement *agreement, int64_t now_ns,
                          char *text, size_t bytes);

/* Why this set has been aborted, for users; NULL: it has not. Valid until the set is removed. Never of the
 * global set, of which numbered calls alone are aborted. */
const char *hvd_agreement_abort_reason(const struct hvd_agreement *agreement, int set);

/* Figures for tests and benchmarks. */
struct hvd_agreement_counts {
    uint64_t messages_up; /* sent by this rank */
    uint64_t messages_down; /* sent by this rank: one per child */
    uint64_t received;
    uint64_t bytes_sent;
    uint64_t bytes_received;
    uint64_t replayed; /* batches started without asking */
    uint64_t decided; /* batches that were asked for */
    uint64_t replays;
    uint64_t breaks;
};
void hvd_agreement_count(const struct hvd_agreement *agreement,
                         struct hvd_agreement_counts *counts);

#endif
