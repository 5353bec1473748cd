/* SPDX-License-Identifier: Apache-2.0 */
/* The process sets as the program sees them. */
#include "collectives/core/process_sets.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/set/sets.h"
#include "collectives/hvd.h"

struct hvd_process_set {
    const struct hvd_set_members *members; /* an owner of it */
    int index; /* of this rank in it, -1: it is no member */
    int64_t started[HVD_UNNAMED_KINDS]; /* by this rank */
};

void hvd_process_sets_init(struct hvd_process_sets *sets)
{
    pthread_mutex_init(&sets->lock, NULL);
}

void hvd_process_sets_finish(struct hvd_process_sets *sets)
{
    for (int i = 0; i < sets->count; i++) {
        hvd_set_members_drop(sets->sets[i].members);
    }
    free(sets->sets);
    pthread_mutex_destroy(&sets->lock);
}

/* NULL: there is none. */
static struct hvd_process_set *find_set(const struct hvd_process_sets *sets, int id)
{
    int low = 0, high = sets->count;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (sets->sets[middle].members->id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < sets->count && sets->sets[low].members->id == id ? &sets->sets[low]
                                                                  : NULL;
}

static int insert(struct hvd_process_sets *sets, const struct hvd_set_members *members)
{
    struct hvd_process_set *grown =
        realloc(sets->sets, ((size_t)sets->count + 1) * sizeof(grown[0]));
    int at = sets->count;

    if (grown == NULL) {
        return HVD_ERR_NOMEM;
    }
    sets->sets = grown;
    while (at > 0 && grown[at - 1].members->id > members->id) {
        grown[at] = grown[at - 1];
        at--;
    }
    grown[at] =
        (struct hvd_process_set){.members = hvd_set_members_keep(members),
                                 .index = hvd_set_members_index(members, sets->rank)};
    sets->count++;
    return 0;
}

int hvd_process_sets_add(struct hvd_process_sets *sets,
                         const struct hvd_set_members *members)
{
    int status;

    pthread_mutex_lock(&sets->lock);
    status = insert(sets, members);
    pthread_mutex_unlock(&sets->lock);
    return status;
}

int hvd_process_sets_open(struct hvd_process_sets *sets, int rank,
                          const struct hvd_set_members *global)
{
    sets->rank = rank;
    return hvd_process_sets_add(sets, global);
}

void hvd_process_sets_remove(struct hvd_process_sets *sets, int id)
{
    struct hvd_process_set *set;

    pthread_mutex_lock(&sets->lock);
    set = find_set(sets, id);
    if (set != NULL) {
        hvd_set_members_drop(set->members);
        sets->count--;
        memmove(set, set + 1, (size_t)(&sets->sets[sets->count] - set) * sizeof(*set));
    }
    pthread_mutex_unlock(&sets->lock);
}

void hvd_process_sets_recount(struct hvd_process_sets *sets)
{
    struct hvd_process_set *global;

    pthread_mutex_lock(&sets->lock);
    global = find_set(sets, HVD_SET_GLOBAL);
    if (global != NULL) {
        memset(global->started, 0, sizeof(global->started));
    }
    pthread_mutex_unlock(&sets->lock);
}

int64_t hvd_process_sets_number(struct hvd_process_sets *sets, int id,
                                enum hvd_unnamed what)
{
    struct hvd_process_set *set;
    int64_t number;

    pthread_mutex_lock(&sets->lock);
    set = find_set(sets, id);
    number = set != NULL ? set->started[what]++ : 0;
    pthread_mutex_unlock(&sets->lock);
    return number;
}

int hvd_process_sets_find(struct hvd_process_sets *sets, int id, int root,
                          struct hvd_set_place *place)
{
    const struct hvd_process_set *set;

    pthread_mutex_lock(&sets->lock);
    set = find_set(sets, id);
    if (set != NULL) {
        place->rank = sets->rank;
        place->size = set->members->count;
        place->index = set->index;
        place->is_created = set->members->name != NULL;
        place->root_index = root >= 0 ? hvd_set_members_index(set->members, root) : -1;
    }
    pthread_mutex_unlock(&sets->lock);
    return set != NULL ? 0 : HVD_ERR_ARG;
}

int hvd_process_sets_ranks(struct hvd_process_sets *sets, int id, int *ranks)
{
    const struct hvd_process_set *set;

    pthread_mutex_lock(&sets->lock);
    set = find_set(sets, id);
    if (set != NULL) {
        memcpy(ranks, set->members->ranks,
               (size_t)set->members->count * sizeof(ranks[0]));
    }
    pthread_mutex_unlock(&sets->lock);
    return set != NULL ? 0 : HVD_ERR_ARG;
}

int hvd_process_sets_ids(struct hvd_process_sets *sets, int *ids)
{
    int count;

    pthread_mutex_lock(&sets->lock);
    count = sets->count;
    for (int i = 0; ids != NULL && i < count; i++) {
        ids[i] = sets->sets[i].members->id;
    }
    pthread_mutex_unlock(&sets->lock);
    return count;
}
