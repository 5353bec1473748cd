/* SPDX-License-Identifier: Apache-2.0 */
/* One process set. */
#include "collectives/set/set.h"

#include <stddef.h>

#include "collectives/request/descriptor.h"
#include "collectives/set/rank_list.h"

struct hvd_set *hvd_set_keep(struct hvd_set *set)
{
    hvd_refcount_keep(&set->refcount);
    return set;
}

void hvd_set_drop(struct hvd_set *set)
{
    hvd_refcount_drop(set != NULL ? &set->refcount : NULL);
}

int hvd_set_index(const struct hvd_set *set, int rank)
{
    return hvd_rank_list_index(set->ranks, set->count, rank);
}

bool hvd_set_fails(const struct hvd_set *set, const struct hvd_descriptor *descriptor)
{
    return set->is_permanent ? descriptor->call != 0
                             : descriptor->kind != HVD_KIND_SET_REMOVE;
}

bool hvd_set_refuses(const struct hvd_set *set, const struct hvd_descriptor *descriptor)
{
    return set->state == HVD_SET_ABORTED && hvd_set_fails(set, descriptor) &&
           descriptor->kind != HVD_KIND_SET_ABORT;
}

void hvd_set_end_abort(struct hvd_set *set)
{
    set->state = HVD_SET_ABORTED;
}
