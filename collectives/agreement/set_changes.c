/* SPDX-License-Identifier: Apache-2.0 */
/* Adds and removes process sets. */
#include "collectives/agreement/set_changes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/agreement_state.h"
#include "collectives/set/rank_list.h"
#include "pmix_boot/boot.h"

/* --- removals of this rank --- */

/* Returns this rank's entry that removes the set, or NULL. */
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

/* Whether this rank still uses the process set that is to be removed: one of its tensors
 * is in flight, one of its batches has not ended (cancelled ones have no tensors), or
 * this rank is a member and the replay is active. The end of the replay may start a
 * cancelled batch. */
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
    return replay != NULL && replay->set->is_member &&
           (replay->running > 0 || replay->is_active);
}

/* Reports the removal of a set that this rank no longer uses; otherwise defers the report
 * and asks for the end of the set's replay. */
int hvd_set_changes_submit_removal(struct hvd_agreement *agreement,
                                   struct hvd_entry *removal)
{
    struct hvd_replay *replay = hvd_replay_of(agreement, removal->descriptor.root);
    const bool was_deferred = removal->is_deferred;

    removal->is_deferred = is_in_use(agreement, removal);
    agreement->set_changes.deferred += removal->is_deferred - was_deferred;
    if (!removal->is_deferred) {
        return hvd_reports_add(agreement, removal);
    }
    return replay != NULL ? hvd_replay_ask_break(agreement, replay, false) : 0;
}

int hvd_set_changes_report(struct hvd_agreement *agreement)
{
    int status = 0;

    for (struct hvd_entry *entry = agreement->tensors->oldest;
         entry != NULL && status == 0 && agreement->set_changes.deferred > 0;
         entry = entry->newer) {
        if (entry->is_deferred) {
            status = hvd_set_changes_submit_removal(agreement, entry);
        }
    }
    return status;
}

/* --- decisions of all ranks --- */

/* Queues an event about a set; entry, which may be NULL, ends after the event. */
static void tell_change(struct hvd_agreement *agreement,
                        const struct hvd_agreement_event *event, int set,
                        struct hvd_entry *entry)
{
    if (entry != NULL) {
        entry->request->value = set;
        entry->is_agreed = true; /* from here on, the entry must not be dropped */
    }
    hvd_event_queue_put(&agreement->events, event, entry);
}

/* Adds a set under the number that rank 0 chose; ends this rank's entry, which may be
 * NULL. */
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

    /* set is 0 if such a set existed when rank 0 decided; the same message may have
     * removed it since. */
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

/* Ends the job: a batch that still runs needs the set. It can only be a cancelled batch
 * of a replay that rank 0 announced while this rank reported the removal. */
static int refuse_removal(struct hvd_agreement *agreement, const struct hvd_set *set)
{
    char text[256];
    struct hvd_agreement_event event = {
        .kind = HVD_AGREEMENT_GIVE_UP,
        .data = text,
        .silent = agreement->rank,
    };

    snprintf(text, sizeof(text),
             "process set %d is removed while rank %d on %.64s still runs a batch of it: "
             "remove a set after all members have finished their last step",
             set->id, agreement->rank, agreement->settings.peers[agreement->rank].host);
    event.bytes = strlen(text) + 1;
    hvd_event_queue_put(&agreement->events, &event, NULL);
    return HVD_ERR_PEER;
}

/* Removes a set that every member has reported as no longer in use. This rank's entry, if
 * it has one, ends. */
static int remove_set(struct hvd_agreement *agreement, struct hvd_set *set,
                      struct hvd_entry *entry)
{
    const struct hvd_agreement_event event = {.kind = HVD_AGREEMENT_REMOVE_SET,
                                              .set = set};
    const int id = set->id;

    if (set->replay->running > 0) {
        return refuse_removal(agreement, set);
    }
    hvd_replay_remove(agreement, set);
    hvd_call_order_forget(&agreement->call_order, id);
    tell_change(agreement, &event, id, entry); /* the event keeps the set */
    hvd_sets_remove(agreement->sets, set);
    return 0;
}

int hvd_set_changes_remove(struct hvd_agreement *agreement, struct hvd_entry *entry)
{
    struct hvd_set *set = hvd_sets_find(agreement->sets, entry->descriptor.root);

    if (set == NULL || set->is_permanent || set->name != NULL) {
        hvd_tensor_table_end(agreement->tensors, entry, HVD_ERR_ARG,
                             "There is no such process set to remove.");
        return 0;
    }
    return remove_set(agreement, set, entry);
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

/* Finds this rank's entry that a decision is about. */
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
    return remove_set(agreement, removed, entry);
}
