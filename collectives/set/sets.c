/* SPDX-License-Identifier: Apache-2.0 */
/* The process sets of a job, and which ranks have joined, as one rank sees them. */
#include "collectives/set/sets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/hvd.h"
#include "collectives/request/batch.h"
#include "collectives/request/descriptor.h"
#include "collectives/set/rank_list.h"
#include "collectives/transport/control/tree.h"
#include "gpu_binding/base/error.h"

/* Returns the branch that contains `rank`, or -1. */
static int find_branch(const struct hvd_sets *sets, const int *children, int rank)
{
    if (rank == sets->rank) {
        return 0;
    }
    while (rank >= 0) {
        int parent = hvd_tree_parent(sets->layout, rank);

        if (parent == sets->rank) {
            for (int i = 1; i < sets->branches; i++) {
                if (children[i - 1] == rank) {
                    return i;
                }
            }
        }
        rank = parent;
    }
    return -1;
}

static int find_branches(struct hvd_sets *sets)
{
    int *children = malloc((size_t)sets->branches * sizeof(children[0]));

    if (children == NULL) {
        return HVD_ERR_NOMEM;
    }
    hvd_tree_children(sets->layout, sets->rank, children);
    for (int rank = 0; rank < sets->layout->size; rank++) {
        sets->branch_of[rank] = find_branch(sets, children, rank);
    }
    free(children);
    return 0;
}

static int add_global(struct hvd_sets *sets)
{
    int size = sets->layout->size;
    int *ranks = malloc((size_t)size * sizeof(ranks[0]));

    if (ranks == NULL) {
        return HVD_ERR_NOMEM;
    }
    for (int i = 0; i < size; i++) {
        ranks[i] = i;
    }
    sets->global = hvd_sets_add(sets, HVD_SET_GLOBAL, ranks, size, NULL);
    free(ranks);
    if (sets->global == NULL) {
        return HVD_ERR_NOMEM;
    }
    sets->global->is_permanent = true;
    sets->global->has_joins = true;
    sets->global->priorities = HVD_PRIORITIES;
    return 0;
}

int hvd_sets_init(struct hvd_sets *sets, const struct hvd_layout *layout, int rank,
                  struct hvd_error *err)
{
    size_t size = (size_t)layout->size;

    *sets = (struct hvd_sets){
        .layout = layout,
        .rank = rank,
        .branches = 1 + hvd_tree_children(layout, rank, NULL),
        .branch_of = calloc(size, sizeof(int)),
        .has_joined = calloc(size, sizeof(bool)),
    };
    pthread_mutex_init(&sets->lock, NULL);
    sets->joined_in = calloc((size_t)sets->branches, sizeof(int));
    if (sets->branch_of == NULL || sets->has_joined == NULL || sets->joined_in == NULL ||
        find_branches(sets) != 0 || add_global(sets) != 0) {
        hvd_sets_finish(sets);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the process sets of %d ranks",
                        layout->size);
    }
    return 0;
}

static void free_set(struct hvd_refcount *refcount)
{
    struct hvd_set *set = (struct hvd_set *)refcount;

    free(set->ranks);
    free(set->in_branch);
    free(set->queues);
    free(set->name);
    free(set);
}

void hvd_sets_finish(struct hvd_sets *sets)
{
    if (sets->layout == NULL) {
        return;
    }
    for (int id = 0; id < sets->count; id++) {
        hvd_set_drop(sets->by_id[id]);
    }
    free(sets->by_id);
    free(sets->branch_of);
    free(sets->has_joined);
    free(sets->joined_in);
    pthread_mutex_destroy(&sets->lock);
    *sets = (struct hvd_sets){0};
}

struct hvd_set *hvd_sets_find(const struct hvd_sets *sets, int id)
{
    return id >= 0 && id < sets->count ? sets->by_id[id] : NULL;
}

const struct hvd_set *hvd_sets_same(const struct hvd_sets *sets, const int *ranks,
                                    int count)
{
    for (int id = 0; id < sets->count; id++) {
        const struct hvd_set *set = sets->by_id[id];

        if (set != NULL && set->name == NULL && set->count == count &&
            memcmp(set->ranks, ranks, (size_t)count * sizeof(ranks[0])) == 0) {
            return set;
        }
    }
    return NULL;
}

/* --- adding and removing --- */

/* Limits numbers from other ranks, so that the table stays small. */
static const int most_sets = 1 << 20;

int hvd_sets_next(const struct hvd_sets *sets, int after)
{
    int id = after + 1;

    while (hvd_sets_find(sets, id) != NULL) {
        id++;
    }
    return id;
}

bool hvd_sets_is_free(const struct hvd_sets *sets, int64_t id)
{
    return id > 0 && id < most_sets && hvd_sets_find(sets, (int)id) == NULL;
}

static struct hvd_set *make_set(const struct hvd_sets *sets, int id, const int *ranks,
                                int count, const char *name)
{
    struct hvd_set *set = calloc(1, sizeof(*set));

    if (set == NULL) {
        return NULL;
    }
    hvd_refcount_init(&set->refcount, free_set);
    set->id = id;
    set->count = count;
    set->ranks = malloc((size_t)count * sizeof(ranks[0]));
    set->in_branch = calloc((size_t)sets->branches, sizeof(set->in_branch[0]));
    set->queues = calloc(HVD_PRIORITIES, sizeof(struct hvd_queue *));
    set->name = name != NULL ? strdup(name) : NULL;
    if (set->ranks == NULL || set->in_branch == NULL || set->queues == NULL ||
        (name != NULL && set->name == NULL)) {
        hvd_set_drop(set);
        return NULL;
    }
    memcpy(set->ranks, ranks, (size_t)count * sizeof(ranks[0]));
    for (int i = 0; i < count; i++) {
        int branch = sets->branch_of[ranks[i]];

        if (branch >= 0) {
            set->in_branch[branch]++;
        }
    }
    set->index = hvd_set_index(set, sets->rank);
    set->is_member = set->index >= 0;
    set->priorities = 1;
    return set;
}

/* Grows the table until it holds this number. */
static int make_room(struct hvd_sets *sets, int id)
{
    struct hvd_set **grown;

    if (id < sets->count) {
        return 0;
    }
    grown = realloc(sets->by_id, ((size_t)id + 1) * sizeof(grown[0]));
    if (grown == NULL) {
        return HVD_ERR_NOMEM;
    }
    sets->by_id = grown;
    while (sets->count <= id) {
        grown[sets->count++] = NULL;
    }
    return 0;
}

struct hvd_set *hvd_sets_add(struct hvd_sets *sets, int id, const int *ranks, int count,
                             const char *name)
{
    struct hvd_set *set = make_set(sets, id, ranks, count, name);
    int status = set != NULL ? 0 : HVD_ERR_NOMEM;

    if (status == 0) {
        pthread_mutex_lock(&sets->lock);
        status = make_room(sets, id);
        if (status == 0) {
            sets->by_id[id] = set;
        }
        pthread_mutex_unlock(&sets->lock);
    }
    if (status != 0) {
        hvd_set_drop(set);
        return NULL;
    }
    return set;
}

void hvd_sets_remove(struct hvd_sets *sets, struct hvd_set *set)
{
    pthread_mutex_lock(&sets->lock);
    sets->by_id[set->id] = NULL;
    sets->aborted -= set->state != HVD_SET_ACTIVE ? 1 : 0;
    pthread_mutex_unlock(&sets->lock);
    hvd_set_drop(set);
}

/* --- aborts --- */

void hvd_sets_begin_abort(struct hvd_sets *sets, struct hvd_set *set, int status,
                          const char *reason)
{
    sets->aborted++;
    set->state = HVD_SET_ABORTING;
    set->abort_status = status;
    snprintf(set->abort_reason, sizeof(set->abort_reason), "%s", reason);
}

bool hvd_sets_refuse(const struct hvd_sets *sets, const struct hvd_descriptor *descriptor)
{
    const struct hvd_set *set =
        sets->aborted > 0 ? hvd_sets_find(sets, descriptor->set) : NULL;

    return set != NULL && hvd_set_refuses(set, descriptor);
}

const char *hvd_sets_abort_reason(const struct hvd_sets *sets, int id)
{
    const struct hvd_set *set = hvd_sets_find(sets, id);

    return set != NULL && set->state == HVD_SET_ABORTED && !set->is_permanent
               ? set->abort_reason
               : NULL;
}

/* --- branches, and joins --- */

bool hvd_sets_is_in_branch(const struct hvd_sets *sets, uint64_t rank, int branch)
{
    return rank < (uint64_t)sets->layout->size && sets->branch_of[rank] == branch;
}

static bool has_joined(const struct hvd_sets *sets, const struct hvd_set *set, int rank)
{
    return set->has_joins && sets->has_joined[rank];
}

int hvd_sets_first_in_branch(const struct hvd_sets *sets, const struct hvd_set *set,
                             int branch)
{
    for (int i = 0; i < set->count; i++) {
        int rank = set->ranks[i];

        if (sets->branch_of[rank] == branch && !has_joined(sets, set, rank)) {
            return rank;
        }
    }
    return -1;
}

bool hvd_sets_needs(const struct hvd_sets *sets, const struct hvd_set *set, int branch)
{
    int joined = set->has_joins ? sets->joined_in[branch] : 0;

    return set->in_branch[branch] > joined;
}

bool hvd_sets_needs_rank(const struct hvd_sets *sets, const struct hvd_set *set, int rank)
{
    return hvd_set_index(set, rank) >= 0 && !has_joined(sets, set, rank);
}

void hvd_sets_join(struct hvd_sets *sets, int rank)
{
    int branch = sets->branch_of[rank];

    if (branch >= 0 && !sets->has_joined[rank]) {
        sets->has_joined[rank] = true;
        sets->joined_in[branch]++;
        sets->joined++;
    }
}

void hvd_sets_join_over(struct hvd_sets *sets)
{
    memset(sets->has_joined, 0, (size_t)sets->layout->size * sizeof(sets->has_joined[0]));
    memset(sets->joined_in, 0, (size_t)sets->branches * sizeof(sets->joined_in[0]));
    sets->joined = 0;
}

/* --- any thread --- */

/* Finds a set that this rank's program knows, because all ranks have added it or this
 * rank is a member, or returns NULL. The lock is held. */
static struct hvd_set *find_known(const struct hvd_sets *sets, int id)
{
    struct hvd_set *set = hvd_sets_find(sets, id);

    return set != NULL && (set->name == NULL || set->is_member) ? set : NULL;
}

int hvd_sets_position(struct hvd_sets *sets, int id, int root,
                      struct hvd_set_position *position)
{
    const struct hvd_set *set;

    pthread_mutex_lock(&sets->lock);
    set = find_known(sets, id);
    if (set != NULL) {
        *position = (struct hvd_set_position){
            .rank = sets->rank,
            .size = set->count,
            .index = set->index,
            .root_index = root >= 0 ? hvd_set_index(set, root) : -1,
            .is_created = set->name != NULL,
        };
    }
    pthread_mutex_unlock(&sets->lock);
    return set != NULL ? 0 : HVD_ERR_ARG;
}

int hvd_sets_ranks(struct hvd_sets *sets, int id, int *ranks)
{
    const struct hvd_set *set;

    pthread_mutex_lock(&sets->lock);
    set = find_known(sets, id);
    if (set != NULL) {
        memcpy(ranks, set->ranks, (size_t)set->count * sizeof(ranks[0]));
    }
    pthread_mutex_unlock(&sets->lock);
    return set != NULL ? 0 : HVD_ERR_ARG;
}

int hvd_sets_ids(struct hvd_sets *sets, int *ids)
{
    int count = 0;

    pthread_mutex_lock(&sets->lock);
    for (int id = 0; id < sets->count; id++) {
        if (find_known(sets, id) == NULL) {
            continue;
        }
        if (ids != NULL) {
            ids[count] = id;
        }
        count++;
    }
    pthread_mutex_unlock(&sets->lock);
    return count;
}

int64_t hvd_sets_number(struct hvd_sets *sets, int id, enum hvd_unnamed what)
{
    struct hvd_set *set;
    int64_t number;

    pthread_mutex_lock(&sets->lock);
    set = find_known(sets, id);
    number = set != NULL ? set->started[what]++ : 0;
    pthread_mutex_unlock(&sets->lock);
    return number;
}

void hvd_sets_recount(struct hvd_sets *sets)
{
    pthread_mutex_lock(&sets->lock);
    memset(sets->global->started, 0, sizeof(sets->global->started));
    pthread_mutex_unlock(&sets->lock);
}
