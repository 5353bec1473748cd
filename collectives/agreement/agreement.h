/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks agree which tensors they run next, and in which order: one rank's part,
 * as a state machine without sockets, threads or clock, so that a thousand ranks can be
 * tried in one process.
 *
 *   not in the cache   described in full up the tree; rank 0 checks that all mean the
 *                      same, gives it an id and answers down the tree
 *   in the cache       its id goes up, a batch of ids comes down: O(log nodes) messages
 *   order repeats      no message at all: each rank starts the batches of the replay as
 *                      soon as it has their tensors (replay.h)
 *
 * Along the tree equal reports become one: a node hears of a tensor once from each child.
 *
 * The agreement queues the work that follows (messages to send, batches to run) as
 * events, and its caller takes them with hvd_agreement_next. It calls nothing above it,
 * except to end an entry (tensor_table.h).
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
    struct hvd_sets *sets; /* of this rank; borrowed */
    const struct hvd_boot_peer *peers; /* by rank, for host names in texts; borrowed */
    struct hvd_fusion fusion;
    bool may_replay;
    int64_t stall_warning_ns; /* 0: never look for stalls */
    int64_t stall_shutdown_ns; /* 0: never end the job for one */
};

enum hvd_agreement_event_kind {
    /* Send a message to the parent, or to children. */
    HVD_AGREEMENT_SEND_UP,
    HVD_AGREEMENT_SEND_DOWN,
    /* All ranks of its set run this batch, in this order of its queue or set. The caller
     * owns it, and gives it to hvd_agreement_finish when it is done. */
    HVD_AGREEMENT_RUN,
    /* Let the replayed batches of a set stand still until CONTINUE: the QUICK and BULK
     * queues of the global set, the team of another. This rank is in the set. */
    HVD_AGREEMENT_PAUSE,
    HVD_AGREEMENT_CONTINUE,
    /* A batch that was given to RUN has new entries, all zeros. The old ones must not be
     * touched any more. Its set stands still. */
    HVD_AGREEMENT_CANCEL,
    /* All ranks have added a set, or its members have created one, of which the ranks
     * near to them hear. */
    HVD_AGREEMENT_ADD_SET,
    HVD_AGREEMENT_REMOVE_SET,
    /* A set, not the global one, has been aborted: nothing more is agreed on in it. */
    HVD_AGREEMENT_ABORT_SET,
    /* Rank 0, after hvd_agreement_watch: another rank has a tensor. */
    HVD_AGREEMENT_HEARD,
    /* The job is to end: it is stalled, or a process set cannot be removed. */
    HVD_AGREEMENT_GIVE_UP
};

/* One thing that an agreement wants its caller to do. */
struct hvd_agreement_event {
    enum hvd_agreement_event_kind kind;
    /* SEND_UP, SEND_DOWN: the message. GIVE_UP: a text for users. HEARD: the
     * name of the tensor. */
    const void *data;
    size_t bytes; /* of data, with the end of a text */
    union {
        struct hvd_batch *batch; /* RUN, CANCEL */
        /* PAUSE, CONTINUE, ADD_SET, REMOVE_SET, ABORT_SET; lent, as data */
        struct hvd_set *set;
        /* SEND_DOWN */
        struct {
            /* A child on another node by its index in the order of hvd_tree_children; or
             * HVD_AGREEMENT_NODE: all children on this node. */
            int child;
            bool is_first; /* of the events that send this message of decisions */
        } down;
        /* HEARD */
        struct {
            int rank;
            int set;
            enum hvd_kind kind;
        } heard;
        /* GIVE_UP. -1: rank 0 alone asks for it, and all ranks leave together. Else the
         * rank that the text blames: it does not answer, or cannot remove a process set
         * that it still uses. The agreement's function has failed with HVD_ERR_PEER. */
        int silent;
    };
};

/* The settings are copied. The caller owns *out. */
int hvd_agreement_create(const struct hvd_agreement_settings *settings,
                         struct hvd_agreement **out, struct hvd_error *err);
void hvd_agreement_destroy(struct hvd_agreement *agreement); /* NULL is fine */

/* Takes the oldest event, which is lent until the next call of any function of the
 * agreement; returns NULL when there is none. The caller calls it after submit,
 * from_below, from_above, progress and finish, even if these fail, and carries out each
 * event until it returns NULL. The next call tells the agreement that the event has been
 * carried out; if that fails, the job must end instead.
 *
 * *status is the result of the function before. When it is 0 and no event is left, next
 * carries out the decisions that the function has passed down: the children need not
 * wait until this rank has parsed them. *status is set if that fails.
 *
 * Events come in the order in which the agreement arrived at them:
 *   - A report goes up before a decision comes down that changes the meaning of its ids.
 *   - A decision goes down before this rank acts on it, so that the ranks below do not
 *     wait for this rank's work.
 *   - ADD_SET comes before all batches of the set, REMOVE_SET after them.
 *   - PAUSE comes first, then CANCEL and the batches of zeros, then CONTINUE.
 *
 * An entry of this rank that asked for ADD_SET or REMOVE_SET ends when the event has been
 * carried out, so that its owner finds the set there, or gone. All other entries end in
 * the functions that queue the events. */
const struct hvd_agreement_event *hvd_agreement_next(struct hvd_agreement *agreement,
                                                     int *status);

/* This rank has a tensor (or a join, a barrier, a process set) to run: an entry that has
 * been added to tensors, in the order of all of these. Its submitted_ns, when it is not
 * 0, is when that was; else it was now. What goes to the global process set between the
 * start and the end of this rank's join ends at once, with HVD_ERR_ARG, and disturbs no
 * other rank. */
int hvd_agreement_submit(struct hvd_agreement *agreement, struct hvd_entry *entry,
                         int64_t now_ns);

/* A message of a branch (sets.h) or of the parent. from_above borrows the payload until
 * hvd_agreement_next has returned NULL. */
int hvd_agreement_from_below(struct hvd_agreement *agreement, int branch,
                             const void *payload, size_t bytes, int64_t now_ns);
int hvd_agreement_from_above(struct hvd_agreement *agreement, const void *payload,
                             size_t bytes, int64_t now_ns);

/* Rank 0: whether from_below makes HEARD events. */
void hvd_agreement_watch(struct hvd_agreement *agreement, bool wants_heard);

/* Sends what has piled up, and decides what is due. is_waited: a thread of this rank
 * waits for a request. *moved is set if anything was done; else there are no events. */
int hvd_agreement_progress(struct hvd_agreement *agreement, bool is_waited,
                           int64_t now_ns, bool *moved);

/* When progress has something to do although nothing has happened; -1: never. */
int64_t hvd_agreement_deadline(const struct hvd_agreement *agreement, bool is_waited,
                               int64_t now_ns);

/* The batch is done: ends its entries, now or when it is certain how. Takes it over. */
int hvd_agreement_finish(struct hvd_agreement *agreement, struct hvd_batch *batch);

/* Rank 0: no replay from now on; returns true when none is in force, at once or later. */
bool hvd_agreement_settle(struct hvd_agreement *agreement, int *status);

/* Ends every entry that is not in a batch that all ranks run. all: those too, and no
 * event is left. */
void hvd_agreement_drop(struct hvd_agreement *agreement, bool all, int status,
                        const char *text);

/* Rank 0: from now on fuse so. The same on all ranks, by a decision; a replay that was
 * made before ends. */
int hvd_agreement_tune(struct hvd_agreement *agreement, int64_t threshold,
                       int64_t cycle_ns);

/* How tensors are fused on this rank now; borrowed. */
const struct hvd_fusion *hvd_agreement_fusion(const struct hvd_agreement *agreement);

/* A rank that has not let this one's complaints about a stall through for long, with a
 * sentence; -1: there is none. If others leave, it is the likely reason. */
int hvd_agreement_suspect(const struct hvd_agreement *agreement, int64_t now_ns,
                          char *text, size_t bytes);

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
