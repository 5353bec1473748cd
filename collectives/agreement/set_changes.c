/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets that are added and removed. */
#include "collectives/agreement/set_changes.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/agreement_state.h"

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

/* "0,2,5": the ranks of a set, which the caller frees; NULL without memory. */
static int *parse_ranks(const char *text, int *count)
{
    int *ranks = malloc((strlen(text) / 2 + 1) * sizeof(ranks[0]));
    char *rest = (char *)text;

    *count = 0;
    while (ranks != NULL && *rest != '\0') {
        ranks[(*count)++] = (int)strtol(rest, &rest, 10);
        rest += *rest == ',' ? 1 : 0;
    }
    return ranks;
}

int hvd_set_changes_add(struct hvd_agreement *agreement, struct hvd_entry *entry)
{
    int count, set, status;
    int *ranks = parse_ranks(entry->proposal.note, &count);

    if (ranks == NULL) {
        return HVD_ERR_NOMEM;
    }
    if (hvd_membership_same(&agreement->membership, ranks, count) != NULL) {
        free(ranks);
        hvd_tensor_table_end(agreement->tensors, entry, HVD_ERR_ARG,
                             "A process set with the same ranks already exists.");
        return 0;
    }
    set = hvd_membership_add(&agreement->membership, ranks, count);
    status = set < 0 ? set : hvd_replay_add(agreement, set);
    status =
        status != 0
            ? status
            : agreement->ops->add_set(agreement->context,
                                      hvd_membership_find(&agreement->membership, set));
    free(ranks);
    if (status == 0) {
        end(agreement, entry, set);
    }
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
