/* SPDX-License-Identifier: Apache-2.0 */
/* The process sets as the public interface sees them. */
#include "collectives/engine/sets.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/members.h"
#include "collectives/hvd.h"

int hvd_sets_add(struct hvd_sets *sets, int id, const int *ranks, int count)
{
    struct hvd_set *grown =
        realloc(sets->sets, ((size_t)sets->count + 1) * sizeof(grown[0]));
    size_t bytes = (size_t)count * sizeof(ranks[0]);
    int *copy = malloc(bytes);
    int at = sets->count;

    if (grown != NULL) {
        sets->sets = grown;
    }
    if (grown == NULL || copy == NULL) {
        free(copy);
        return HVD_ERR_NOMEM;
    }
    memcpy(copy, ranks, bytes);
    while (at > 0 && grown[at - 1].id > id) {
        grown[at] = grown[at - 1];
        at--;
    }
    grown[at] = (struct hvd_set){.id = id, .count = count, .ranks = copy};
    sets->count++;
    return 0;
}

/* The index of the first set whose number is not below id. */
static int find_index(const struct hvd_sets *sets, int id)
{
    int low = 0, high = sets->count;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (sets->sets[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct hvd_set *find_set(const struct hvd_sets *sets, int id)
{
    int index = find_index(sets, id);

    return index < sets->count && sets->sets[index].id == id ? &sets->sets[index] : NULL;
}

void hvd_sets_remove(struct hvd_sets *sets, int id)
{
    struct hvd_set *set = find_set(sets, id);

    if (set != NULL) {
        free(set->ranks);
        sets->count--;
        memmove(set, set + 1, (size_t)(&sets->sets[sets->count] - set) * sizeof(*set));
    }
}

void hvd_sets_finish(struct hvd_sets *sets)
{
    for (int i = 0; i < sets->count; i++) {
        free(sets->sets[i].ranks);
    }
    free(sets->sets);
    *sets = (struct hvd_sets){0};
}

void hvd_sets_recount(struct hvd_sets *sets)
{
    struct hvd_set *global = find_set(sets, HVD_SET_GLOBAL);

    if (global != NULL) {
        memset(global->counts, 0, sizeof(global->counts));
    }
}

int64_t hvd_sets_count(struct hvd_sets *sets, int id, enum hvd_count what)
{
    struct hvd_set *set = find_set(sets, id);

    return set != NULL ? set->counts[what]++ : 0;
}

const struct hvd_set *hvd_sets_find(const struct hvd_sets *sets, int id)
{
    return find_set(sets, id);
}

int hvd_set_index(const struct hvd_set *set, int rank)
{
    return hvd_ranks_index(set->ranks, set->count, rank);
}
