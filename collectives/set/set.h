/* SPDX-License-Identifier: Apache-2.0 */
/* A process set: the ranks of a job that run collectives together, as one rank sees them.
 *
 * The global set comes first. It differs from the others in three ways, each of which is
 * a field here: its batches have several queues, its ranks may join, and it lasts as long
 * as the job.
 *
 * The members of a set never change. Other folders keep their state of a set in structs
 * of their own, to which the set points, so that they need not look it up. */
#ifndef HVD_SET_H
#define HVD_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/refcount.h"

/* Kinds of requests that have no name. Ranks match them by number: each rank counts its
 * requests of each kind. */
enum hvd_unnamed {
    HVD_UNNAMED_BARRIERS,
    HVD_UNNAMED_BARRIER_CALLS, /* numbered barriers; ranks that call them may disagree */
    /* additions and removals of sets; counted in the global set, or in the set that its
     * members created */
    HVD_UNNAMED_SET_CHANGES,
    /* aborts of a set by this rank; other ranks do not compare these numbers */
    HVD_UNNAMED_ABORTS,
    HVD_UNNAMED_KINDS
};

/* The states of a set. A set is aborted if a member asks for that, or if its ranks
 * disagree on numbered calls; from then on, its ranks agree on nothing more in it. A set
 * can be removed in each state. (A set that its members are still creating has no number
 * and no state: agreement/set_creations.h.) */
enum hvd_set_state {
    HVD_SET_ACTIVE,
    HVD_SET_ABORTING, /* rank 0 knows of the abort, and ends the set's replay first */
    HVD_SET_ABORTED
};

enum {
    HVD_ABORT_REASON = 500 /* bytes */
};

struct hvd_gpu_set;
struct hvd_descriptor;
struct hvd_queue;
struct hvd_replay;

struct hvd_set {
    struct hvd_refcount refcount;
    int id;
    int count;
    int *ranks; /* [count] ascending */
    int *in_branch; /* [branches] the number of members in each branch, see sets.h */
    int index; /* this rank's index among the members; -1: not a member */
    bool is_member; /* this rank is a member */
    bool is_permanent; /* the set is never removed, and never aborted as a whole */
    /* the ranks may join; tensors do not wait for ranks that have joined */
    bool has_joins;
    /* the number of queues that run batches side by side: HVD_PRIORITIES or 1 */
    int priorities;
    /* the name that its members chose when they created the set; NULL: all ranks have
     * added it, without a name */
    char *name;
    enum hvd_set_state state;
    int abort_status; /* the status with which its tensors fail; 0: not aborted */
    char abort_reason[HVD_ABORT_REASON]; /* the text for users */
    /* counts of this rank's unnamed requests; protected by the lock of sets.h */
    int64_t started[HVD_UNNAMED_KINDS];

    /* State of other folders, each changed by the folder named here alone. */
    struct hvd_replay *replay; /* agreement/replay.h */
    struct hvd_queue **queues; /* [priorities] the queues of run/teams.h */
    struct hvd_gpu_set *gpu; /* gpu/gpu_runtime.h; NULL until the set runs GPU tensors */
};

/* Adds or removes an owner; drop accepts NULL. A removed set lives on until its last
 * owner drops it. */
struct hvd_set *hvd_set_keep(struct hvd_set *set);
void hvd_set_drop(struct hvd_set *set);

/* Returns the index of a rank in the set, or -1. */
int hvd_set_index(const struct hvd_set *set, int rank);

/* Whether the tensor must fail because its set has been aborted. All tensors fail except
 * the removal of the set. In a permanent set, which is aborted when ranks disagree on
 * numbered calls, only numbered calls fail. */
bool hvd_set_fails(const struct hvd_set *set, const struct hvd_descriptor *descriptor);

/* Whether the tensor fails at once, without a message to other ranks, because its set has
 * been aborted. */
bool hvd_set_refuses(const struct hvd_set *set, const struct hvd_descriptor *descriptor);

/* Marks the set as aborted, after rank 0 has decided so. */
void hvd_set_end_abort(struct hvd_set *set);

#endif
