/* SPDX-License-Identifier: Apache-2.0 */
/* The process sets as the public interface sees them. */
#include "collectives/engine/sets.h"

#include <stdlib.h>
#include <string.h>

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

void hvd_sets_remove(struct hvd_sets *sets, int id)
{
    for (int i = 0; i < sets->count; i++) {
        if (sets->sets[i].id == id) {
            free(sets->sets[i].ranks);
            sets->count--;
            memmove(&sets->sets[i], &sets->sets[i + 1],
                    (size_t)(sets->count - i) * sizeof(sets->sets[0]));
            return;
        }
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
    for (int i = 0; i < sets->count; i++) {
        if (sets->sets[i].id == HVD_SET_GLOBAL) {
            memset(sets->sets[i].counts, 0, sizeof(sets->sets[i].counts));
        }
    }
}

const struct hvd_set *hvd_sets_find(const struct hvd_sets *sets, int id)
{
    for (int i = 0; i < sets->count; i++) {
        if (sets->sets[i].id == id) {
            return &sets->sets[i];
        }
    }
    return NULL;
}

int hvd_set_index(const struct hvd_set *set, int rank)
{
    for (int i = 0; i < set->count; i++) {
        if (set->ranks[i] == rank) {
            return i;
        }
    }
    return -1;
}
