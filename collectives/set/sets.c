/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets, and who has joined, as one node of the tree sees them. */
#include "collectives/set/sets.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/transport/control/tree.h"
#include "gpu_binding/base/error.h"

/* The branch through which this rank hears of `rank`. */
static int find_branch(const struct hvd_membership *membership, const int *children,
                       int rank)
{
    if (rank == membership->rank) {
        return 0;
    }
    while (rank >= 0) {
        int parent = hvd_tree_parent(membership->layout, rank);

        if (parent == membership->rank) {
            for (int i = 1; i < membership->branches; i++) {
                if (children[i - 1] == rank) {
                    return i;
                }
            }
        }
        rank = parent;
    }
    return -1;
}

static int find_branches(struct hvd_membership *membership)
{
    int *children = malloc((size_t)membership->branches * sizeof(children[0]));

    if (children == NULL) {
        return HVD_ERR_NOMEM;
    }
    hvd_tree_children(membership->layout, membership->rank, children);
    for (int rank = 0; rank < membership->layout->size; rank++) {
        membership->branch_of[rank] = find_branch(membership, children, rank);
    }
    free(children);
    return 0;
}

static int add_global(struct hvd_membership *membership)
{
    int size = membership->layout->size;
    int *ranks = malloc((size_t)size * sizeof(ranks[0]));
    int status = HVD_ERR_NOMEM;

    if (ranks != NULL) {
        for (int i = 0; i < size; i++) {
            ranks[i] = i;
        }
        status = hvd_membership_add(membership, 0, ranks, size, NULL);
    }
    free(ranks);
    return status;
}

int hvd_membership_init(struct hvd_membership *membership,
                        const struct hvd_layout *layout, int rank, struct hvd_error *err)
{
    size_t size = (size_t)layout->size;

    *membership = (struct hvd_membership){
        .layout = layout,
        .rank = rank,
        .branches = 1 + hvd_tree_children(layout, rank, NULL),
        .branch_of = calloc(size, sizeof(int)),
        .has_joined = calloc(size, sizeof(bool)),
    };
    membership->joined_in = calloc((size_t)membership->branches, sizeof(int));
    if (membership->branch_of == NULL || membership->has_joined == NULL ||
        membership->joined_in == NULL || find_branches(membership) != 0 ||
        add_global(membership) != 0) {
        hvd_membership_finish(membership);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the members of %d ranks",
                        layout->size);
    }
    return 0;
}

static void free_set(struct hvd_refcount *refcount)
{
    struct hvd_set_members *set = (struct hvd_set_members *)refcount;

    free(set->ranks);
    free(set->in_branch);
    free(set->name);
    free(set);
}

const struct hvd_set_members *hvd_set_members_keep(const struct hvd_set_members *set)
{
    hvd_refcount_keep((struct hvd_refcount *)&set->refcount);
    return set;
}

void hvd_set_members_drop(const struct hvd_set_members *set)
{
    hvd_refcount_drop((struct hvd_refcount *)(set != NULL ? &set->refcount : NULL));
}

void hvd_membership_finish(struct hvd_membership *membership)
{
    for (int i = 0; i < membership->set_count; i++) {
        hvd_set_members_drop(membership->sets[i]);
    }
    free(membership->sets);
    free(membership->branch_of);
    free(membership->has_joined);
    free(membership->joined_in);
    *membership = (struct hvd_membership){0};
}

const struct hvd_set_members *hvd_membership_find(const struct hvd_membership *membership,
                                                  int set)
{
    return set >= 0 && set < membership->set_count ? membership->sets[set] : NULL;
}

const struct hvd_set_members *hvd_membership_same(const struct hvd_membership *membership,
                                                  const int *ranks, int count)
{
    for (int i = 0; i < membership->set_count; i++) {
        const struct hvd_set_members *set = membership->sets[i];

        if (set != NULL && set->name == NULL && set->count == count &&
            memcmp(set->ranks, ranks, (size_t)count * sizeof(ranks[0])) == 0) {
            return set;
        }
    }
    return NULL;
}

static struct hvd_set_members *make_set(const struct hvd_membership *membership,
                                        const int *ranks, int count)
{
    struct hvd_set_members *set = calloc(1, sizeof(*set));

    if (set == NULL) {
        return NULL;
    }
    hvd_refcount_init(&set->refcount, free_set);
    set->count = count;
    set->ranks = malloc((size_t)count * sizeof(ranks[0]));
    set->in_branch = calloc((size_t)membership->branches, sizeof(set->in_branch[0]));
    if (set->ranks == NULL || set->in_branch == NULL) {
        hvd_set_members_drop(set);
        return NULL;
    }
    memcpy(set->ranks, ranks, (size_t)count * sizeof(ranks[0]));
    for (int i = 0; i < count; i++) {
        int branch = membership->branch_of[ranks[i]];

        if (branch >= 0) {
            set->in_branch[branch]++;
        }
        set->is_member |= ranks[i] == membership->rank;
    }
    return set;
}

/* A table with this many numbers has a size that can be had. */
static const int most_sets = 1 << 20;

int hvd_membership_next(const struct hvd_membership *membership, int after)
{
    int set = after + 1;

    while (hvd_membership_find(membership, set) != NULL) {
        set++;
    }
    return set;
}

bool hvd_membership_is_free(const struct hvd_membership *membership, int64_t set)
{
    return set > 0 && set < most_sets &&
           hvd_membership_find(membership, (int)set) == NULL;
}

/* Room in the table for this number. */
static int make_room(struct hvd_membership *membership, int set)
{
    struct hvd_set_members **sets;

    if (set < membership->set_count) {
        return 0;
    }
    sets = realloc(membership->sets, ((size_t)set + 1) * sizeof(sets[0]));
    if (sets == NULL) {
        return HVD_ERR_NOMEM;
    }
    membership->sets = sets;
    while (membership->set_count <= set) {
        sets[membership->set_count++] = NULL;
    }
    return 0;
}

int hvd_membership_add(struct hvd_membership *membership, int set, const int *ranks,
                       int count, const char *name)
{
    struct hvd_set_members *members = make_set(membership, ranks, count);

    if (members != NULL && name != NULL) {
        members->name = strdup(name);
    }
    if (members == NULL || (name != NULL && members->name == NULL) ||
        make_room(membership, set) != 0) {
        hvd_set_members_drop(members);
        return HVD_ERR_NOMEM;
    }
    members->id = set;
    membership->sets[set] = members;
    return 0;
}

void hvd_membership_remove(struct hvd_membership *membership, int set)
{
    if (set >= 0 && set < membership->set_count) {
        hvd_set_members_drop(membership->sets[set]);
        membership->sets[set] = NULL;
    }
}

bool hvd_membership_is_in_branch(const struct hvd_membership *membership, uint64_t rank,
                                 int branch)
{
    return rank < (uint64_t)membership->layout->size &&
           membership->branch_of[rank] == branch;
}

int hvd_membership_first_in_branch(const struct hvd_membership *membership,
                                   const struct hvd_set_members *set, int branch)
{
    for (int i = 0; i < set->count; i++) {
        int rank = set->ranks[i];

        if (membership->branch_of[rank] == branch &&
            (set->id != 0 || !membership->has_joined[rank])) {
            return rank;
        }
    }
    return -1;
}

bool hvd_membership_needs(const struct hvd_membership *membership,
                          const struct hvd_set_members *set, int branch)
{
    int joined = set->id == 0 ? membership->joined_in[branch] : 0;

    return set->in_branch[branch] > joined;
}

int hvd_set_members_index(const struct hvd_set_members *set, int rank)
{
    const int *ranks = set->ranks;
    int low = 0, high = set->count;

    if (rank >= 0 && rank < set->count && ranks[rank] == rank) {
        return rank; /* always so in the global set */
    }
    while (low < high) {
        int middle = low + (high - low) / 2;

        if (ranks[middle] == rank) {
            return middle;
        }
        if (ranks[middle] < rank) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return -1;
}

void hvd_membership_join(struct hvd_membership *membership, int rank)
{
    int branch = membership->branch_of[rank];

    if (branch >= 0 && !membership->has_joined[rank]) {
        membership->has_joined[rank] = true;
        membership->joined_in[branch]++;
        membership->joined++;
    }
}

void hvd_membership_join_over(struct hvd_membership *membership)
{
    memset(membership->has_joined, 0,
           (size_t)membership->layout->size * sizeof(membership->has_joined[0]));
    memset(membership->joined_in, 0,
           (size_t)membership->branches * sizeof(membership->joined_in[0]));
    membership->joined = 0;
}
