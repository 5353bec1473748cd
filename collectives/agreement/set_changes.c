/* SPDX-License-Identifier: Apache-2.0 */
/* Process sets that are added and removed. */
#include "collectives/agreement/set_changes.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/agreement_state.h"
#include "collectives/set/rank_list.h"

/* --- removals of this rank --- */

/* NULL: there is none. */
static struct hvd_entry *removal_of(const struct hvd_agreement *agreement, int set)
{
    struct hvd_entry *entry = agreement->tensors->oldest;

    while (entry != NULL && !(entry->descriptor.kind == HVD_KIND_SET_REMOVE &&
                              entry->descriptor.root == set && !entry->is_agreed)) {
        entry = entry->newer;
    }
    return entry;
}

bool hvd_set_changes_is_removing(const struct hvd_agreement *agreement, int set)
{
    return removal_of(agreement, set) != NULL;
}

/* Whether this rank has a tensor of the process set under way that entry is to remove, or
 * runs a batch of it: one that is cancelled has no tensor. */
static bool is_in_use(const struct hvd_agreement *agreement,
                      const struct hvd_entry *removal)
{
    const struct hvd_replay *replay = hvd_replay_of(agreement, removal->descriptor.root);

    for (const struct hvd_entry *entry = agreement->tensors->oldest; entry != NULL;
         entry = entry->newer) {
        if (entry->descriptor.set == removal->descriptor.root && entry != removal) {
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

/* Queues an event about a set; entry, which may be NULL, ends behind it. */
static void tell_change(struct hvd_agreement *agreement,
                        const struct hvd_agreement_event *event, int set,
                        struct hvd_entry *entry)
{
    if (entry != NULL) {
        entry->request->value = set;
        entry->is_agreed = true; /* it is no more to be dropped */
    }
    hvd_event_queue_put(&agreement->events, event, entry);
}

/* Adds a set under a number that another rank has sent; this rank's entry, if it has one,
 * ends. */
static int add_set(struct hvd_agreement *agreement, int64_t set,
                   const struct hvd_set *members, struct hvd_entry *entry)
{
    struct hvd_agreement_event event = {.kind = HVD_AGREEMENT_ADD_SET};

    if (!hvd_sets_is_free(agreement->sets, set)) {
        return HVD_ERR_NET;
    }
    event.set = hvd_sets_add(agreement->sets, (int)set, members->ranks, members->count,
                             members->name);
    if (event.set == NULL || hvd_replay_add(agreement, event.set) != 0) {
        return HVD_ERR_NOMEM;
    }
    tell_change(agreement, &event, (int)set, entry);
    return 0;
}

int hvd_set_changes_add(struct hvd_agreement *agreement, struct hvd_entry *entry,
                        int64_t set)
{
    struct hvd_set members = {0};
    int status = hvd_rank_list_read(entry->descriptor.note, agreement->sets->layout->size,
                                    &members.ranks, &members.count);

    /* set is 0 if rank 0 knew such a set; it may have been removed in the same message. */
    if (status == 0 && (set == 0 || hvd_sets_same(agreement->sets, members.ranks,
                                                  members.count) != NULL)) {
        hvd_tensor_table_end(agreement->tensors, entry, HVD_ERR_ARG,
                             "A process set with the same ranks already exists.");
    } else if (status == 0) {
        status = add_set(agreement, set, &members, entry);
    }
    free(members.ranks);
    return status;
}

/* No rank has anything of the set left: each has asked for the removal and then waited
 * for that before it said so. This rank's entry, if it has one, ends. */
static void remove_set(struct hvd_agreement *agreement, struct hvd_set *set,
                       struct hvd_entry *entry)
{
    const struct hvd_agreement_event event = {.kind = HVD_AGREEMENT_REMOVE_SET,
                                              .set = set};
    const int id = set->id;

    hvd_replay_remove(agreement, set);
    hvd_call_order_forget(&agreement->call_order, id);
    tell_change(agreement, &event, id, entry); /* which keeps the set */
    hvd_sets_remove(agreement->sets, set);
}

void hvd_set_changes_remove(struct hvd_agreement *agreement, struct hvd_entry *entry)
{
    struct hvd_set *set = hvd_sets_find(agreement->sets, entry->descriptor.root);

    if (set == NULL || set->is_permanent || set->name != NULL) {
        hvd_tensor_table_end(agreement->tensors, entry, HVD_ERR_ARG,
                             "There is no such process set to remove.");
        return;
    }
    remove_set(agreement, set, entry);
}

/* --- sets that their members create alone --- */

static int ask_for_set(struct hvd_agreement *agreement, const struct hvd_set_wish *wish)
{
    return agreement->is_root
               ? hvd_set_creations_add(&agreement->set_creations, wish,
                                       hvd_coordinator_writers(agreement->coordinator))
               : hvd_reports_put_wish(agreement, wish);
}

int hvd_set_changes_submit_creation(struct hvd_agreement *agreement,
                                    const struct hvd_entry *entry)
{
    const struct hvd_set_wish wish = {.rank = agreement->rank,
                                      .name = entry->descriptor.name,
                                      .list = entry->descriptor.note};

    return ask_for_set(agreement, &wish);
}

int hvd_set_changes_take_wish(struct hvd_agreement *agreement,
                              struct hvd_branch_message *message, uint64_t rank)
{
    const struct hvd_set_wish wish = {.rank = (int)rank,
                                      .name = hvd_take_text(&message->reader),
                                      .list = hvd_take_text(&message->reader)};

    if (message->reader.failed ||
        !hvd_sets_is_in_branch(agreement->sets, rank, message->branch)) {
        return HVD_ERR_NET;
    }
    return ask_for_set(agreement, &wish);
}

/* Finds this rank's entry, which a decision is about. */
static int find_creation(const struct hvd_agreement *agreement,
                         const struct hvd_set_outcome *outcome, struct hvd_entry **found)
{
    const struct hvd_key key = hvd_key_make(agreement->sets->global->id, outcome->name);
    const struct hvd_named_tensor *tensor =
        hvd_tensor_table_find(agreement->tensors, &key);
    struct hvd_entry *entry = tensor != NULL ? tensor->entry : NULL;

    if (entry == NULL || entry->descriptor.kind != HVD_KIND_SET_CREATE ||
        entry->is_agreed ||
        (outcome->status == 0 && strcmp(entry->descriptor.note, outcome->list) != 0)) {
        return HVD_ERR_NET;
    }
    *found = entry;
    return 0;
}

int hvd_set_changes_take_creation(struct hvd_agreement *agreement, int set,
                                  struct hvd_reader *reader)
{
    struct hvd_set_outcome outcome;
    struct hvd_set members = {0};
    struct hvd_entry *entry = NULL;
    int status = hvd_take_set_outcome(reader, &outcome);

    if (status == 0) {
        status = hvd_rank_list_read(outcome.list, agreement->sets->layout->size,
                                    &members.ranks, &members.count);
    }
    if (status == 0 && hvd_set_index(&members, agreement->rank) >= 0) {
        status = find_creation(agreement, &outcome, &entry);
    }
    if (status == 0 && outcome.status == 0) {
        members.name = (char *)outcome.name;
        status = add_set(agreement, set, &members, entry);
    } else if (status == 0 && entry != NULL) {
        entry->request->value = set;
        hvd_tensor_table_end(agreement->tensors, entry, outcome.status, outcome.text);
    }
    free(members.ranks);
    return status;
}

int hvd_set_changes_take_removal(struct hvd_agreement *agreement, int set)
{
    struct hvd_set *removed = hvd_sets_find(agreement->sets, set);
    struct hvd_entry *entry = removal_of(agreement, set);

    if (removed == NULL || removed->name == NULL ||
        (removed->is_member && (entry == NULL || entry->is_deferred))) {
        return HVD_ERR_NET;
    }
    remove_set(agreement, removed, entry);
    return 0;
}
