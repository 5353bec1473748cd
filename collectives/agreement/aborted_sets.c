/* SPDX-License-Identifier: Apache-2.0 */
/* A list of the process sets that have been aborted. */
#include "collectives/agreement/aborted_sets.h"

#include <stdlib.h>

void hvd_aborted_sets_finish(struct hvd_aborted_sets *sets)
{
    while (sets->first != NULL) {
        hvd_aborted_sets_remove(sets, sets->first->set);
    }
}

struct hvd_aborted_set *hvd_aborted_sets_find(const struct hvd_aborted_sets *sets,
                                              int set)
{
    struct hvd_aborted_set *at = sets->first;

    while (at != NULL && at->set != set) {
        at = at->next;
    }
    return at;
}

struct hvd_aborted_set *hvd_aborted_sets_add(struct hvd_aborted_sets *sets, int set)
{
    struct hvd_aborted_set *added = calloc(1, sizeof(*added));

    if (added != NULL) {
        added->set = set;
        added->next = sets->first;
        sets->first = added;
    }
    return added;
}

void hvd_aborted_sets_remove(struct hvd_aborted_sets *sets, int set)
{
    struct hvd_aborted_set **at = &sets->first;
    struct hvd_aborted_set *removed;

    while (*at != NULL && (*at)->set != set) {
        at = &(*at)->next;
    }
    removed = *at;
    if (removed != NULL) {
        *at = removed->next;
        free(removed);
    }
}

const char *hvd_aborted_sets_reason(const struct hvd_aborted_sets *sets, int set)
{
    const struct hvd_aborted_set *aborted = hvd_aborted_sets_find(sets, set);

    return aborted != NULL && aborted->is_decided ? aborted->reason : NULL;
}

int hvd_aborted_sets_status(const struct hvd_aborted_sets *sets, int set)
{
    return hvd_aborted_sets_find(sets, set)->ranks_disagree ? HVD_ERR_MISMATCH
                                                            : HVD_ERR_ABORTED;
}

bool hvd_aborted_sets_cover(const struct hvd_aborted_sets *sets,
                            const struct hvd_proposal *proposal)
{
    return sets->first != NULL && hvd_proposal_ends_with_set(proposal) &&
           proposal->kind != HVD_KIND_SET_ABORT &&
           hvd_aborted_sets_reason(sets, proposal->set) != NULL;
}
