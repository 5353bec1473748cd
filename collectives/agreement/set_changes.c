/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets that are added and removed. */
#include "collectives/agreement/set_changes.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/agreement_state.h"
#include "collectives/agreement/rank_list.h"

/* --- removals of this rank --- */

bool hvd_set_changes_is_removing(const struct hvd_agreement *agreement, int set)
{
    const struct hvd_entry *entry = agreement->tensors->oldest;

    while (entry != NULL && !(entry->proposal.kind == HVD_KIND_SET_REMOVE &&
                              entry->proposal.root == set)) {
        entry = entry->newer;
    }
    return entry != NULL;
}

/* Whether this rank has a tensor of the process set under way that entry is to remove, or runs a
 * batch of it: one that is void has no tensor. */
static bool is_in_use(const struct hvd_agreement *agreement,
                      const struct hvd_entry *removal)
{
    const struct hvd_replay *replay = hvd_replay_of(agreement, removal->proposal.root);

    for (const struct hvd_entry *entry = agreement->tensors->oldest; entry != NULL;
         entry = entry->newer) {
        if (entry->proposal.set == removal->proposal.root) {
            return true;
        }
    }
    return replay != NULL && replay->running > 0;
}

int hvd_set_changes_submit_removal(struct hvd_agreement *agreement,
                                   struct hvd_entry *entry)
{
    if (is_in_use(agreement, entry)) {
        entry->is_deferred = true;
        agreement->set_changes.deferred++;
        return 0;
    }
    return hvd_reports_add(agreement, entry);
}

int hvd_set_changes_report(struct hvd_agreement *agreement)
{
    int status = 0;

    for (struct hvd_entry *entry = agreement->tensors->oldest;
         entry != NULL && status == 0 && agreement->set_changes.deferred > 0;
         entry = entry->newer) {
        if (entry->is_deferred && !is_in_use(agreement, entry)) {
            entry->is_deferred = false;
            agreement->set_changes.deferred--;
            status = hvd_reports_add(agreement, entry);
        }
    }
    return status;
}

/* --- what all have agreed on --- */

static void end(struct hvd_agreement *agreement, struct hvd_entry *entry, int set)
{
    entry->request->value = set;
    hvd_tensor_table_end(agreement->tensors, entry, 0, "");
}

/* Adds a set under a number that another rank has sent. */
static int add(struct hvd_agreement *agreement, int64_t set, const int *ranks, int count,
               const char *name)
{
    struct hvd_membership *membership = &agreement->membership;
    int status;

    if (!hvd_membership_is_free(membership, set)) {
        return HVD_ERR_NET;
    }
    status = hvd_membership_add(membership, (int)set, ranks, count, name);
    status = status != 0 ? status : hvd_replay_add(agreement, (int)set);
    return status != 0
               ? status
               : agreement->ops->add_set(agreement->context,
                                         hvd_membership_find(membership, (int)set));
}

int hvd_set_changes_add(struct hvd_agreement *agreement, struct hvd_entry *entry,
                        int64_t set)
{
    int count = 0, *ranks = NULL;
    int status = hvd_rank_list_read(entry->proposal.note,
                                    agreement->membership.layout->size, &ranks, &count);

    if (status == 0 &&
        hvd_membership_same(&agreement->membership, ranks, count) != NULL) {
        hvd_tensor_table_end(agreement->tensors, entry, HVD_ERR_ARG,
                             "A process set with the same ranks already exists.");
    } else if (status == 0) {
        status = add(agreement, set, ranks, count, NULL);
        if (status == 0) {
            end(agreement, entry, (int)set);
        }
    }
    free(ranks);
    return status;
}

/* No rank has anything of the set left: each has asked for the removal and then waited for that
 * before it said so. */
void hvd_set_changes_remove(struct hvd_agreement *agreement, struct hvd_entry *entry)
{
    int set = entry->proposal.root;

    if (set == HVD_SET_GLOBAL ||
        hvd_membership_find(&agreement->membership, set) == NULL) {
        hvd_tensor_table_end(agreement->tensors, entry, HVD_ERR_ARG,
                             "There is no such process set to remove.");
        return;
    }
    hvd_replay_remove(agreement, set);
    hvd_membership_remove(&agreement->membership, set);
    agreement->ops->remove_set(agreement->context, set);
    end(agreement, entry, set);
}
