/* SPDX-License-Identifier: Apache-2.0 */
/* A process set: the ranks of a job that run collectives together, as one rank sees them.
 *
 * The global set is the first of them. In three things it differs from the others, and
 * each is a field here: its batches have several queues, its ranks may join, and it stays
 * as long as the job.
 *
 * Members do not change. What other rooms have of a set is in a struct of theirs, to
 * which the set points; so whoever has the set need not look for it. */
#ifndef HVD_SET_H
#define HVD_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/refcount.h"

/* What a rank starts without a name is matched by its number. */
enum hvd_unnamed {
    HVD_UNNAMED_BARRIERS,
    HVD_UNNAMED_BARRIER_CALLS, /* numbered ones, of which ranks may disagree */
    /* sets added and removed; of the global set, or the created one */
    HVD_UNNAMED_SET_CHANGES,
    HVD_UNNAMED_ABORTS, /* of a set, by this rank: nobody compares them */
    HVD_UNNAMED_KINDS
};

/* A member may abort a set, and it is aborted when its ranks disagree on numbered calls:
 * then nothing more is agreed on in it. From each state it can be removed. (A set that
 * its members create has no number yet: agreement/set_creations.h.) */
enum hvd_set_state {
    HVD_SET_ACTIVE,
    HVD_SET_ABORTING, /* rank 0 has heard of it, and ends the set's replay first */
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
    int *in_branch; /* [branches] how many of them: sets.h */
    int index; /* of this rank among them; -1: it is no member */
    bool is_member; /* this rank is */
    bool is_permanent; /* it is not removed, nor aborted as a whole */
    bool has_joins; /* its ranks may join; then its tensors do not wait for them */
    int priorities; /* in which its batches run side by side: HVD_PRIORITIES or 1 */
    char *name; /* of the entries that created it; NULL: all ranks have added it */
    enum hvd_set_state state;
    int abort_status; /* with which its tensors fail; 0: it is active */
    char abort_reason[HVD_ABORT_REASON]; /* for users */
    /* by this rank; changes under the lock of sets.h */
    int64_t started[HVD_UNNAMED_KINDS];

    /* Each belongs to the room that is named, which alone changes it. */
    struct hvd_replay *replay; /* agreement/replay.h */
    struct hvd_queue **queues; /* [priorities]; each is of run/teams.h */
    struct hvd_gpu_set *gpu; /* gpu/gpu_runtime.h; NULL before it has run GPU tensors */
};

/* One owner more, one less (NULL is fine): a set that is removed may still be known to
 * some. */
struct hvd_set *hvd_set_keep(struct hvd_set *set);
void hvd_set_drop(struct hvd_set *set);

/* The index of a rank in the set, or -1. */
int hvd_set_index(const struct hvd_set *set, int rank);

/* Whether this rank's program knows the set: all ranks have added it, or it is a
 * member. */
bool hvd_set_is_known(const struct hvd_set *set);

/* Whether the tensor fails when its set is aborted. The removal of the set does not; and
 * in a permanent set, which is aborted when ranks disagree on numbered calls, only these
 * do. */
bool hvd_set_fails(const struct hvd_set *set, const struct hvd_descriptor *descriptor);

/* Whether the tensor fails without a message, because its set has been aborted. */
bool hvd_set_refuses(const struct hvd_set *set, const struct hvd_descriptor *descriptor);

/* The abort is decided. */
void hvd_set_end_abort(struct hvd_set *set);

#endif
