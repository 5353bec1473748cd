/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets, and who has joined, as one node of the tree sees them. */
#include "collectives/agreement/members.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/transport/control/tree.h"

/* The branch through which this rank hears of `rank`. */
static int find_branch(const struct hvd_members *members, const int *children, int rank)
{
    if (rank == members->rank) {
        return 0;
    }
    while (rank >= 0) {
        int parent = hvd_tree_parent(members->layout, rank);

        if (parent == members->rank) {
            for (int i = 1; i < members->branches; i++) {
                if (children[i - 1] == rank) {
                    return i;
                }
            }
        }
        rank = parent;
    }
    return -1;
}

static int find_branches(struct hvd_members *members)
{
    int *children = malloc((size_t)members->branches * sizeof(children[0]));

    if (children == NULL) {
        return HVD_ERR_NOMEM;
    }
    hvd_tree_children(members->layout, members->rank, children);
    for (int rank = 0; rank < members->layout->size; rank++) {
        members->branch_of[rank] = find_branch(members, children, rank);
    }
    free(children);
    return 0;
}

static int add_global(struct hvd_members *members)
{
    int size = members->layout->size;
    int *ranks = malloc((size_t)size * sizeof(ranks[0]));
    int set = HVD_ERR_NOMEM;

    if (ranks != NULL) {
        for (int i = 0; i < size; i++) {
            ranks[i] = i;
        }
        set = hvd_members_add(members, ranks, size);
    }
    free(ranks);
    return set < 0 ? set : 0;
}

int hvd_members_init(struct hvd_members *members, const struct hvd_layout *layout,
                     int rank, struct hvd_error *err)
{
    size_t size = (size_t)layout->size;

    *members = (struct hvd_members){
        .layout = layout,
        .rank = rank,
        .branches = 1 + hvd_tree_children(layout, rank, NULL),
        .branch_of = calloc(size, sizeof(int)),
        .has_joined = calloc(size, sizeof(bool)),
    };
    members->joined_in = calloc((size_t)members->branches, sizeof(int));
    if (members->branch_of == NULL || members->has_joined == NULL ||
        members->joined_in == NULL || find_branches(members) != 0 ||
        add_global(members) != 0) {
        hvd_members_finish(members);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the members of %d ranks",
                        layout->size);
    }
    return 0;
}

static void free_set(struct hvd_member_set *set)
{
    if (set != NULL) {
        free(set->ranks);
        free(set->in_branch);
        free(set);
    }
}

void hvd_members_finish(struct hvd_members *members)
{
    for (int i = 0; i < members->set_count; i++) {
        free_set(members->sets[i]);
    }
    free(members->sets);
    free(members->branch_of);
    free(members->has_joined);
    free(members->joined_in);
    *members = (struct hvd_members){0};
}

const struct hvd_member_set *hvd_members_find(const struct hvd_members *members, int set)
{
    return set >= 0 && set < members->set_count ? members->sets[set] : NULL;
}

const struct hvd_member_set *hvd_members_same(const struct hvd_members *members,
                                              const int *ranks, int count)
{
    for (int i = 0; i < members->set_count; i++) {
        const struct hvd_member_set *set = members->sets[i];

        if (set != NULL && set->count == count &&
            memcmp(set->ranks, ranks, (size_t)count * sizeof(ranks[0])) == 0) {
            return set;
        }
    }
    return NULL;
}

static struct hvd_member_set *make_set(const struct hvd_members *members,
                                       const int *ranks, int count)
{
    struct hvd_member_set *set = calloc(1, sizeof(*set));

    if (set == NULL) {
        return NULL;
    }
    set->count = count;
    set->ranks = malloc((size_t)count * sizeof(ranks[0]));
    set->in_branch = calloc((size_t)members->branches, sizeof(set->in_branch[0]));
    if (set->ranks == NULL || set->in_branch == NULL) {
        free_set(set);
        return NULL;
    }
    memcpy(set->ranks, ranks, (size_t)count * sizeof(ranks[0]));
    for (int i = 0; i < count; i++) {
        int branch = members->branch_of[ranks[i]];

        if (branch >= 0) {
            set->in_branch[branch]++;
        }
        set->is_member |= ranks[i] == members->rank;
    }
    return set;
}

/* The lowest free number, for which the table has room then; or HVD_ERR_NOMEM. */
static int find_id(struct hvd_members *members)
{
    struct hvd_member_set **sets;
    int id = 0;

    while (id < members->set_count && members->sets[id] != NULL) {
        id++;
    }
    if (id == members->set_count) {
        sets = realloc(members->sets, ((size_t)id + 1) * sizeof(sets[0]));
        if (sets == NULL) {
            return HVD_ERR_NOMEM;
        }
        sets[id] = NULL;
        members->sets = sets;
        members->set_count++;
    }
    return id;
}

int hvd_members_add(struct hvd_members *members, const int *ranks, int count)
{
    struct hvd_member_set *set = make_set(members, ranks, count);
    int id = set != NULL ? find_id(members) : HVD_ERR_NOMEM;

    if (id < 0) {
        free_set(set);
        return id;
    }
    set->id = id;
    members->sets[id] = set;
    return id;
}

void hvd_members_remove(struct hvd_members *members, int set)
{
    if (set >= 0 && set < members->set_count) {
        free_set(members->sets[set]);
        members->sets[set] = NULL;
    }
}

bool hvd_members_needs(const struct hvd_members *members, int set, int branch)
{
    const struct hvd_member_set *found = hvd_members_find(members, set);
    int joined = set == 0 ? members->joined_in[branch] : 0;

    return found != NULL && found->in_branch[branch] > joined;
}

int hvd_ranks_index(const int *ranks, int count, int rank)
{
    int low = 0, high = count;

    if (rank >= 0 && rank < count && ranks[rank] == rank) {
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

int hvd_members_index(const struct hvd_member_set *set, int rank)
{
    return hvd_ranks_index(set->ranks, set->count, rank);
}

void hvd_members_join(struct hvd_members *members, int rank)
{
    int branch = members->branch_of[rank];

    if (branch >= 0 && !members->has_joined[rank]) {
        members->has_joined[rank] = true;
        members->joined_in[branch]++;
        members->joined++;
    }
}

void hvd_members_join_over(struct hvd_members *members)
{
    memset(members->has_joined, 0,
           (size_t)members->layout->size * sizeof(members->has_joined[0]));
    memset(members->joined_in, 0,
           (size_t)members->branches * sizeof(members->joined_in[0]));
    members->joined = 0;
}
