/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks agree which tensors they run next, and in which order. An agreement is
 * one rank's part: a state machine without sockets, threads or clock, so that a test can
 * run a thousand ranks in one process.
 *
 *   new tensor      it is described in full up the tree; rank 0 checks that all
 *                   descriptions agree, assigns an id and answers down the tree
 *   cached tensor   its id goes up, a batch of ids comes down: O(log nodes) messages
 *   order repeats   no message at all: each rank starts the batches of the replay as
 *                   soon as it has their tensors (replay.h)
 *
 * Equal reports are merged on their way up, so that each child sends one report of a
 * tensor.
 *
 * The agreement queues the work that follows (messages to send, batches to run) as
 * events, and its caller takes them with hvd_agreement_next. The agreement itself calls
 * only one function of the caller: the one that ends an entry (tensor_table.h).
 *
 * Threads: one at a time, under the progress lock. Times are in ns of one monotonic
 * clock. Functions that return int return 0 or a status after which the job must end. */
#ifndef HVD_AGREEMENT_H
#define HVD_AGREEMENT_H

#include "collectives/agreement/fusion.h"
#include "collectives/set/sets.h"
#include "collectives/request/descriptor.h"

struct hvd_agreement;
struct hvd_batch;
struct hvd_boot_peer;
struct hvd_entry;
struct hvd_tensor_table;

enum {
    HVD_AGREEMENT_NODE = -1
};

struct hvd_agreement_settings {
    struct hvd_tensor_table *tensors; /* tensor_table.h; borrowed */
    struct hvd_sets *sets; /* the process sets that this rank knows; borrowed */
    const struct hvd_boot_peer *peers; /* by rank, for host names in texts; borrowed */
    int (*pid_of)(const struct hvd_boot_peer *peer); /* for texts */
    struct hvd_fusion fusion;
    bool may_replay;
    int64_t stall_warning_ns; /* 0: never look for stalls */
    int64_t stall_shutdown_ns; /* 0: never end the job because of a stall */
    bool asks_for_stacks; /* on rank 0: ask late ranks where they are */
};

enum hvd_agreement_event_kind {
    /* send a message to the parent, or to children */
    HVD_AGREEMENT_SEND_UP,
    HVD_AGREEMENT_SEND_DOWN,
    /* All ranks of the set run this batch. Batches of one queue run in the order of their
     * RUN events; a set other than the global one has a single queue. The caller owns the
     * batch, and gives it to hvd_agreement_finish when it is done. */
    HVD_AGREEMENT_RUN,
    /* Start no further batch of the set until CONTINUE. In the global set, this stops the
     * queues QUICK and BULK, but not SPARE. Only members of the set get these events. */
    HVD_AGREEMENT_PAUSE,
    HVD_AGREEMENT_CONTINUE,
    /* All entries of a batch that was given to RUN have been replaced by zeros. The old
     * entries must not be touched any more. The set is paused by then. */
    HVD_AGREEMENT_CANCEL,
    /* A set exists from now on, or is removed. If its members alone created it, only
     * ranks on the members' nodes get the event; otherwise all ranks do. */
    HVD_AGREEMENT_ADD_SET,
    HVD_AGREEMENT_REMOVE_SET,
    /* A set other than the global one has been aborted: the ranks agree on no more of its
     * batches. */
    HVD_AGREEMENT_ABORT_SET,
    /* Rank 0, after hvd_agreement_watch: another rank has submitted a tensor. */
    HVD_AGREEMENT_HEARD,
    /* Rank 0 asks where this rank is. The caller finds out where the main thread is, and
     * calls hvd_agreement_tell_stack. */
    HVD_AGREEMENT_SHOW_STACK,
    /* Rank 0: a late rank has told where it is. */
    HVD_AGREEMENT_STACK,
    /* The job must end: it is stalled, or a process set cannot be removed. */
    HVD_AGREEMENT_GIVE_UP
};

/* A piece of work for the caller of an agreement. */
struct hvd_agreement_event {
    enum hvd_agreement_event_kind kind;
    /* SEND_UP, SEND_DOWN: the message. GIVE_UP: a text for users. HEARD: the name of the
     * tensor. STACK: a text of several lines, of which another rank is the author. */
    const void *data;
    size_t bytes; /* size of data, including a text's terminating null byte */
    union {
        struct hvd_batch *batch; /* RUN, CANCEL */
        /* PAUSE, CONTINUE, ADD_SET, REMOVE_SET, ABORT_SET; valid as long as the event */
        struct hvd_set *set;
        /* SEND_DOWN */
        struct {
            /* the child on another node, as an index into hvd_tree_children's list, or
             * HVD_AGREEMENT_NODE for all children on this node */
            int child;
            /* this is the first event that sends this message of decisions */
            bool is_first;
        } down;
        /* HEARD */
        struct {
            int rank;
            int set;
            enum hvd_kind kind;
        } heard;
        int late; /* STACK: the rank */
        /* GIVE_UP. -1: rank 0 asks for the end, and all ranks leave together. Otherwise
         * the rank that the text blames: it does not answer, or cannot remove a process
         * set that it still uses. In this case the agreement's function has failed with
         * HVD_ERR_PEER. */
        int silent;
    };
};

/* The settings are copied. The caller owns *out. */
int hvd_agreement_create(const struct hvd_agreement_settings *settings,
                         struct hvd_agreement **out, struct hvd_error *err);
void hvd_agreement_destroy(struct hvd_agreement *agreement); /* NULL is fine */

/* Takes the oldest event, which is valid until the next call of any function of the
 * agreement; returns NULL when there is none. The caller calls it after submit,
 * from_below, from_above, progress and finish, even if these fail, and carries out each
 * event until it returns NULL. The next call tells the agreement that the event has been
 * carried out; if that fails, the job must end instead. After a submit that succeeds, the
 * caller may first call submit for more entries, and progress.
 *
 * The caller sets *status to the result of the function called before. If it is 0 and no
 * event is left, hvd_agreement_next carries out the decisions that were just passed down
 * to the children, and sets *status if that fails. The children get the message first, so
 * that they need not wait until this rank has parsed it. It also sets *status if there
 * was no memory to queue an event.
 *
 * Events come in the order in which the agreement queued them:
 *   - A report goes up before a decision comes down that changes the meaning of its ids.
 *   - A decision goes down before this rank acts on it, so that the ranks below do not
 *     wait for this rank's work.
 *   - ADD_SET comes before all batches of the set, REMOVE_SET after them.
 *   - PAUSE comes first, then CANCEL and the batches of zeros, then CONTINUE.
 *
 * An entry of this rank that asked for ADD_SET or REMOVE_SET ends when the event has been
 * carried out, so that the set exists, or is gone, when the entry's owner looks. All
 * other entries end in the functions that queue the events. */
const struct hvd_agreement_event *hvd_agreement_next(struct hvd_agreement *agreement,
                                                     int *status);

/* This rank submits an entry (a tensor, a join, a barrier or a change of process sets).
 * Entries must be submitted in the order in which they were added to the tensor table. If
 * entry->submitted_ns is 0, it becomes now_ns. From the start of this rank's join to its
 * end, entries of the global process set end at once with HVD_ERR_ARG; other ranks never
 * hear of them. */
int hvd_agreement_submit(struct hvd_agreement *agreement, struct hvd_entry *entry,
                         int64_t now_ns);

/* Handle a message from a branch of the tree (sets.h), or from the parent. from_above
 * borrows the payload until hvd_agreement_next has returned NULL. */
int hvd_agreement_from_below(struct hvd_agreement *agreement, int branch,
                             const void *payload, size_t bytes, int64_t now_ns);
int hvd_agreement_from_above(struct hvd_agreement *agreement, const void *payload,
                             size_t bytes, int64_t now_ns);

/* Rank 0: sets whether from_below queues HEARD events. */
void hvd_agreement_watch(struct hvd_agreement *agreement, bool wants_heard);

/* Sends the reports that have been collected, and makes the decisions that are due.
 * is_waited: a thread of this rank waits for a request. Sets *moved if it did anything;
 * otherwise there are no events. */
int hvd_agreement_progress(struct hvd_agreement *agreement, bool is_waited,
                           int64_t now_ns, bool *moved);

/* Returns when progress must be called even if nothing happens until then; -1: never. */
int64_t hvd_agreement_deadline(const struct hvd_agreement *agreement, bool is_waited,
                               int64_t now_ns);

/* The batch is done: ends its entries, or leaves those of a cancelled batch to end later.
 * Takes the batch over. */
int hvd_agreement_finish(struct hvd_agreement *agreement, struct hvd_batch *batch);

/* Rank 0: announces no replay any more, and asks all ranks to end those in force. Returns
 * true once none is in force. */
bool hvd_agreement_settle(struct hvd_agreement *agreement, int *status);

/* Ends every entry that is in no agreed batch. With `all`, also ends the entries of
 * agreed batches, and drops all events. */
void hvd_agreement_drop(struct hvd_agreement *agreement, bool all, int status,
                        const char *text);

/* Rank 0: changes how all ranks fuse tensors, by a decision. Replays that are in force
 * end. */
int hvd_agreement_tune(struct hvd_agreement *agreement, int64_t threshold,
                       int64_t cycle_ns);

/* Returns how this rank fuses tensors now; borrowed. */
const struct hvd_fusion *hvd_agreement_fusion(const struct hvd_agreement *agreement);

/* Answers a SHOW_STACK event, at any later time. text: "" if this rank does not show its
 * stack. */
int hvd_agreement_tell_stack(struct hvd_agreement *agreement, const char *text);

/* Returns a rank that seems not to forward this rank's reports of a stall, and writes a
 * sentence about it; -1 if there is none. If other ranks have left the job, the returned
 * rank is the likely cause. */
int hvd_agreement_suspect(const struct hvd_agreement *agreement, int64_t now_ns,
                          char *text, size_t bytes);

/* for metrics, tests and benchmarks */
struct hvd_agreement_counts {
    uint64_t messages_up; /* sent by this rank */
    uint64_t messages_down; /* sent by this rank, counted once per child */
    uint64_t received;
    uint64_t bytes_sent;
    uint64_t bytes_received;
    /* batches of replays, which this rank started without a decision */
    uint64_t replayed;
    uint64_t decided; /* batches that rank 0 decided on */
    uint64_t replays;
    uint64_t breaks;
    uint64_t stall_warnings; /* logged by this rank */
};
void hvd_agreement_count(const struct hvd_agreement *agreement,
                         struct hvd_agreement_counts *counts);

#endif
