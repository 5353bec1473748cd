/* SPDX-License-Identifier: Apache-2.0 */
/* The process sets of a job, and which ranks have joined, as one rank sees them. No
 * system calls or messages.
 *
 * A branch is a source of reports for a node of the tree: the node itself (0), and the
 * subtree of each child (1, 2, ... in the order of hvd_tree_children). A tensor needs the
 * reports of every branch in which its set has ranks; in the global set, branches whose
 * ranks have all joined are not needed. Rank 0 numbers the sets. A set that its members
 * have created alone is known to them, to the other ranks of their nodes, and to the
 * ranks between them and rank 0. Only rank 0 knows all sets.
 *
 * Threads: one at a time (the progress lock), except for the functions that say
 * otherwise. */
#ifndef HVD_SETS_H
#define HVD_SETS_H

#include <pthread.h>

#include "collectives/set/set.h"
#include "pmix_boot/layout.h"

struct hvd_sets {
    const struct hvd_layout *layout; /* borrowed */
    int rank;
    int branches;
    int *branch_of; /* [size] the branch of each rank; -1: not below this rank */
    /* protects the table, which other threads read; held for a few instructions */
    pthread_mutex_t lock;
    struct hvd_set **by_id; /* [count] NULL: there is no such set */
    int count;
    struct hvd_set *global; /* of all ranks */
    int aborted; /* the number of sets that are aborted or about to be */
    bool *has_joined; /* [size] */
    int *joined_in; /* [branches] the number of joined ranks in each branch */
    int joined;
};

/* Initializes the table with the global set. */
int hvd_sets_init(struct hvd_sets *sets, const struct hvd_layout *layout, int rank,
                  struct hvd_error *err);
void hvd_sets_finish(struct hvd_sets *sets); /* zeroed is fine */

/* Returns the set of all ranks. */
static inline struct hvd_set *hvd_sets_global(const struct hvd_sets *sets)
{
    return sets->global;
}

/* Returns the set with this id, or NULL. */
struct hvd_set *hvd_sets_find(const struct hvd_sets *sets, int id);

/* Returns the set of exactly these ranks (ascending) if all ranks have added one, or
 * NULL. */
const struct hvd_set *hvd_sets_same(const struct hvd_sets *sets, const int *ranks,
                                    int count);

/* Rank 0: returns the lowest number above `after` that is free. */
int hvd_sets_next(const struct hvd_sets *sets, int after);

/* Whether a number received from another rank may become the number of a new set. */
bool hvd_sets_is_free(const struct hvd_sets *sets, int64_t id);

/* Adds a set of ascending ranks under a free number. name: the name that its members gave
 * at its creation, or NULL. Returns the set, borrowed until it is removed; NULL without
 * memory. */
struct hvd_set *hvd_sets_add(struct hvd_sets *sets, int id, const int *ranks, int count,
                             const char *name);
void hvd_sets_remove(struct hvd_sets *sets, struct hvd_set *set);

/* Whether a number received from another rank is that of a rank in this branch. */
bool hvd_sets_is_in_branch(const struct hvd_sets *sets, uint64_t rank, int branch);

/* Returns the first member of the set that is in the branch and has not joined, or -1. */
int hvd_sets_first_in_branch(const struct hvd_sets *sets, const struct hvd_set *set,
                             int branch);

/* Whether tensors of the set wait for reports of this branch, or of this rank. */
bool hvd_sets_needs(const struct hvd_sets *sets, const struct hvd_set *set, int branch);
bool hvd_sets_needs_rank(const struct hvd_sets *sets, const struct hvd_set *set,
                         int rank);

/* Begins the abort of an active set with this status and reason. */
void hvd_sets_begin_abort(struct hvd_sets *sets, struct hvd_set *set, int status,
                          const char *reason);

/* Whether the tensor fails at once because its set has been aborted (hvd_set_refuses). */
bool hvd_sets_refuse(const struct hvd_sets *sets,
                     const struct hvd_descriptor *descriptor);

/* Returns why the set has been aborted as a whole, as a text for users that is valid
 * until the set is removed; NULL: it has not been aborted. */
const char *hvd_sets_abort_reason(const struct hvd_sets *sets, int id);

void hvd_sets_join(struct hvd_sets *sets, int rank); /* at most once for each rank */
void hvd_sets_join_over(struct hvd_sets *sets); /* no rank counts as joined any more */

/* --- any thread: the sets that this rank's program knows --- */

/* The positions of this rank and of another rank in a set. */
struct hvd_set_position {
    int rank; /* this rank's number in the job */
    int size; /* number of members of the set */
    int index; /* index of this rank among the members; -1: not a member */
    int root_index; /* index of the other rank; -1: not a member */
    bool is_created; /* only the members have created it, and only they know it */
};

/* hvd_sets_position finds the positions of this rank and of `root` (-1: none) in a set.
 * hvd_sets_ranks writes the ranks of a set to `ranks`, which has room for all members.
 * Both return HVD_ERR_ARG if there is no such set. */
int hvd_sets_position(struct hvd_sets *sets, int id, int root,
                      struct hvd_set_position *position);
int hvd_sets_ranks(struct hvd_sets *sets, int id, int *ranks);

/* Returns the number of sets, and writes their ids unless ids is NULL. */
int hvd_sets_ids(struct hvd_sets *sets, int *ids);

/* Returns how many unnamed requests of this kind this rank has started in the set, and
 * counts one more. */
int64_t hvd_sets_number(struct hvd_sets *sets, int id, enum hvd_unnamed what);

/* Restarts the counts of the global set at 0 when all ranks have joined: ranks that
 * joined early have started fewer requests than others. */
void hvd_sets_recount(struct hvd_sets *sets);

#endif
