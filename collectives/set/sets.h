/* SPDX-License-Identifier: Apache-2.0 */
/* The process sets of a job, and who has joined, as one rank sees them. Pure.
 *
 * A branch is what a node of the tree hears from: itself (0) and the subtree of each
 * child (1, 2, ... in the order of hvd_tree_children). A tensor needs every branch in
 * which its set has ranks; for the global set not those in which all ranks have joined.
 * Rank 0 numbers the sets. A set that its members have created alone is known to them, to
 * the ranks of their nodes, and on the way to rank 0: no rank but rank 0 knows all sets.
 *
 * Threads: one at a time (the progress lock), but for the functions that say otherwise.
 */
#ifndef HVD_SETS_H
#define HVD_SETS_H

#include <pthread.h>

#include "collectives/set/set.h"
#include "pmix_boot/layout.h"

struct hvd_sets {
    const struct hvd_layout *layout; /* borrowed */
    int rank;
    int branches;
    int *branch_of; /* [size] of ranks; -1: not at or below this rank */
    /* of the table, for other threads; held for a few instructions */
    pthread_mutex_t lock;
    struct hvd_set **by_id; /* [count]; NULL: there is no such set */
    int count;
    struct hvd_set *global; /* of all ranks */
    int aborted; /* of them, or about to be */
    bool *has_joined; /* [size] */
    int *joined_in; /* [branches] */
    int joined;
};

/* Begins with the global set. */
int hvd_sets_init(struct hvd_sets *sets, const struct hvd_layout *layout, int rank,
                  struct hvd_error *err);
void hvd_sets_finish(struct hvd_sets *sets); /* zeroed is fine */

/* The set of all ranks. */
static inline struct hvd_set *hvd_sets_global(const struct hvd_sets *sets)
{
    return sets->global;
}

/* NULL: there is none. */
struct hvd_set *hvd_sets_find(const struct hvd_sets *sets, int id);

/* The set of exactly these ranks (ascending) that all ranks have added, or NULL. */
const struct hvd_set *hvd_sets_same(const struct hvd_sets *sets, const int *ranks,
                                    int count);

/* Rank 0: the lowest number above `after` that no set has. */
int hvd_sets_next(const struct hvd_sets *sets, int after);

/* Whether a number that another rank has sent may be that of a new set. */
bool hvd_sets_is_free(const struct hvd_sets *sets, int64_t id);

/* Adds a set of ascending ranks under a free number; name: NULL, or its own. Borrowed
 * until it is removed; NULL without memory. */
struct hvd_set *hvd_sets_add(struct hvd_sets *sets, int id, const int *ranks, int count,
                             const char *name);
void hvd_sets_remove(struct hvd_sets *sets, struct hvd_set *set);

/* Whether a number that another rank has sent is that of a rank in this branch. */
bool hvd_sets_is_in_branch(const struct hvd_sets *sets, uint64_t rank, int branch);

/* The first rank of a set in a branch that has not joined, or -1. */
int hvd_sets_first_in_branch(const struct hvd_sets *sets, const struct hvd_set *set,
                             int branch);

/* Whether tensors of the set wait for this branch; for this rank. */
bool hvd_sets_needs(const struct hvd_sets *sets, const struct hvd_set *set, int branch);
bool hvd_sets_needs_rank(const struct hvd_sets *sets, const struct hvd_set *set,
                         int rank);

/* An active set is to be aborted, with this status and reason. */
void hvd_sets_begin_abort(struct hvd_sets *sets, struct hvd_set *set, int status,
                          const char *reason);

/* As hvd_set_refuses, of the tensor's set. */
bool hvd_sets_refuse(const struct hvd_sets *sets,
                     const struct hvd_descriptor *descriptor);

/* Why this set has been aborted as a whole, for users; NULL: it has not. Valid until the
 * set is removed. */
const char *hvd_sets_abort_reason(const struct hvd_sets *sets, int id);

void hvd_sets_join(struct hvd_sets *sets, int rank); /* at most once a rank */
void hvd_sets_join_over(struct hvd_sets *sets); /* nobody has joined any more */

/* --- any thread: the sets that this rank's program knows --- */

/* Where this rank and another one stand in a set. */
struct hvd_set_position {
    int rank; /* this one, in the job */
    int size; /* of the set */
    int index; /* of this rank, -1: it is no member */
    int root_index; /* of the other one, -1: it is no member */
    bool is_created; /* by its members alone */
};

/* Where this rank and root (-1: nobody) stand in a set; its ranks ([size], out).
 * HVD_ERR_ARG when there is no such set. */
int hvd_sets_position(struct hvd_sets *sets, int id, int root,
                      struct hvd_set_position *position);
int hvd_sets_ranks(struct hvd_sets *sets, int id, int *ranks);

/* The number of sets; ids, if not NULL, gets theirs. */
int hvd_sets_ids(struct hvd_sets *sets, int *ids);

/* How many of these this rank had started in the set; one more from now on. */
int64_t hvd_sets_number(struct hvd_sets *sets, int id, enum hvd_unnamed what);

/* All ranks have joined: they count what they start in the global set from 0 again, for
 * those who had joined have not started what the others have. */
void hvd_sets_recount(struct hvd_sets *sets);

#endif
