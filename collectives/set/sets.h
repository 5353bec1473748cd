/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets, and who has joined, as one node of the tree sees them. Pure.
 *
 * A branch is what the node hears from: itself (0) and the subtree of each child (1, 2, ... in the
 * order of hvd_tree_children). A tensor needs every branch in which its set has ranks; for the
 * global set not those in which all ranks have joined. Rank 0 numbers the sets. Those that their
 * members have created alone are known to these, to the ranks of their nodes, and on the way to rank 0:
 * no rank but rank 0 knows all of them. */
#ifndef HVD_MEMBERSHIP_H
#define HVD_MEMBERSHIP_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu_binding/base/refcount.h"
#include "pmix_boot/layout.h"

/* Of one set. It does not change any more, and may be kept by others, of any thread, after it is
 * removed. */
struct hvd_set_members {
    struct hvd_refcount refcount;
    int id;
    int count;
    int *ranks; /* ascending */
    int *in_branch; /* [branches] how many of them */
    bool is_member; /* this rank is */
    char *name; /* of the entries that created it; NULL: all ranks have added it */
};

struct hvd_membership {
    const struct hvd_layout *layout; /* borrowed */
    int rank;
    int branches;
    int *branch_of; /* [size] of ranks; -1: not at or below this rank */
    struct hvd_set_members **sets; /* [set_count] by id; NULL: there is none */
    int set_count;
    bool *has_joined; /* [size] */
    int *joined_in; /* [branches] */
    int joined;
};

int hvd_membership_init(struct hvd_membership *membership,
                        const struct hvd_layout *layout, int rank, struct hvd_error *err);
void hvd_membership_finish(struct hvd_membership *membership); /* zeroed is fine */

const struct hvd_set_members *hvd_membership_find(const struct hvd_membership *membership,
                                                  int set);

/* The set of exactly these ranks (ascending) that all ranks have added, or NULL. */
const struct hvd_set_members *hvd_membership_same(const struct hvd_membership *membership,
                                                  const int *ranks, int count);

/* Rank 0: the lowest number above `after` that no set has. */
int hvd_membership_next(const struct hvd_membership *membership, int after);

/* Whether a number that another rank has sent may be that of a new set. */
bool hvd_membership_is_free(const struct hvd_membership *membership, int64_t set);

/* Adds a set of ascending ranks under a free number; name: NULL, or its own. Returns 0 or
 * HVD_ERR_NOMEM. */
int hvd_membership_add(struct hvd_membership *membership, int set, const int *ranks,
                       int count, const char *name);
void hvd_membership_remove(struct hvd_membership *membership, int set);

/* Whether a number that another rank has sent is that of a rank in this branch. */
bool hvd_membership_is_in_branch(const struct hvd_membership *membership, uint64_t rank,
                                 int branch);

/* The first rank of a set in a branch that has not joined, or -1. */
int hvd_membership_first_in_branch(const struct hvd_membership *membership,
                                   const struct hvd_set_members *set, int branch);

/* Whether tensors of the set wait for this branch. */
bool hvd_membership_needs(const struct hvd_membership *membership,
                          const struct hvd_set_members *set, int branch);

const struct hvd_set_members *hvd_set_members_keep(const struct hvd_set_members *set);
void hvd_set_members_drop(const struct hvd_set_members *set); /* NULL is fine */

/* The index of a rank in the set, or -1. */
int hvd_set_members_index(const struct hvd_set_members *set, int rank);

void hvd_membership_join(struct hvd_membership *membership,
                         int rank); /* at most once a rank */
void hvd_membership_join_over(
    struct hvd_membership *membership); /* nobody has joined any more */

#endif
