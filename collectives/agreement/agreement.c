/* SPDX-License-Identifier: Apache-2.0 */
/* Life of an agreement, this rank's own tensors, and what is due. */
#include "collectives/agreement/agreement.h"

#include <stdio.h>
#include <stdlib.h>

#include "collectives/agreement/agreement_state.h"
#include "collectives/transport/control/tree.h"

/* How often to look for tensors that a replay holds up, when a thread waits and when none does. */
static const int64_t look_every_ns = 2000000;
static const int64_t look_alone_every_ns = 1000000000;

static int note_children(struct hvd_agreement *agreement)
{
    const struct hvd_layout *layout = agreement->membership.layout;
    size_t branches = (size_t)agreement->membership.branches;
    int *children = calloc(branches, sizeof(children[0]));

    agreement->seen_by = calloc(branches, sizeof(agreement->seen_by[0]));
    agreement->sent_to = calloc(branches, sizeof(agreement->sent_to[0]));
    if (children == NULL || agreement->seen_by == NULL || agreement->sent_to == NULL) {
        free(children);
        return HVD_ERR_NOMEM;
    }
    hvd_tree_children(layout, agreement->rank, children);
    while (agreement->far_children < (int)branches - 1 &&
           layout->node[children[agreement->far_children]] !=
               layout->node[agreement->rank]) {
        agreement->far_children++;
    }
    free(children);
    return 0;
}

int hvd_agreement_create(const struct hvd_layout *layout, int rank,
                         const struct hvd_agreement_settings *settings,
                         const struct hvd_agreement_ops *ops, void *context,
                         struct hvd_agreement **out, struct hvd_error *err)
{
    struct hvd_agreement *agreement = calloc(1, sizeof(*agreement));
    int status;

    if (agreement == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the agreement");
    }
    agreement->settings = *settings;
    agreement->ops = ops;
    agreement->context = context;
    agreement->rank = rank;
    agreement->last_joined = -1;
    status = hvd_membership_init(&agreement->membership, layout, rank, err);
    hvd_readiness_table_init(&agreement->readiness_table, &agreement->membership);
    if (status == 0 && (note_children(agreement) != 0 ||
                        hvd_replay_add(agreement, HVD_SET_GLOBAL) != 0)) {
        status = hvd_fail(err, HVD_ERR_NOMEM, "no memory for the children and replays");
    }
    if (status == 0 && rank == 0) {
        status = hvd_coordinator_create(&agreement->readiness_table, &agreement->cache,
                                        &agreement->settings.fusion,
                                        &agreement->coordinator, err);
    }
    if (status != 0) {
        hvd_agreement_destroy(agreement);
        return status;
    }
    *out = agreement;
    return 0;
}

void hvd_agreement_destroy(struct hvd_agreement *agreement)
{
    if (agreement == NULL) {
        return;
    }
    hvd_coordinator_destroy(agreement->coordinator);
    hvd_replays_finish(agreement);
    hvd_readiness_table_finish(&agreement->readiness_table);
    hvd_tensor_cache_finish(&agreement->cache);
    hvd_hash_table_finish(&agreement->unknown);
    hvd_membership_finish(&agreement->membership);
    hvd_writer_finish(&agreement->up);
    hvd_writer_finish(&agreement->down);
    hvd_writer_finish(&agreement->set_down);
    hvd_writer_finish(&agreement->passed);
    free(agreement->sent_to);
    hvd_stalled_finish(&agreement->stall.held);
    free(agreement->seen_by);
    free(agreement);
}

/* --- own entries --- */

static bool entry_has_key(const void *item, const void *key)
{
    const struct hvd_entry *entry = item;

    return hvd_key_equal(&entry->key, key);
}

static void link_entry(struct hvd_agreement *agreement, struct hvd_entry *entry)
{
    entry->newer = NULL;
    entry->older = agreement->newest;
    if (agreement->newest != NULL) {
        agreement->newest->newer = entry;
    } else {
        agreement->oldest = entry;
    }
    agreement->newest = entry;
}

static void unlink_entry(struct hvd_agreement *agreement, struct hvd_entry *entry)
{
    if (entry->older != NULL) {
        entry->older->newer = entry->newer;
    } else {
        agreement->oldest = entry->newer;
    }
    if (entry->newer != NULL) {
        entry->newer->older = entry->older;
    } else {
        agreement->newest = entry->older;
    }
}

int hvd_agreement_bind(struct hvd_agreement *agreement, struct hvd_entry *entry,
                       struct hvd_cached_tensor *cached)
{
    if (entry->cached == NULL) {
        hvd_hash_table_remove(&agreement->unknown, entry->key.hash, entry_has_key,
                              &entry->key);
    }
    cached->mine = entry;
    entry->cached = cached;
    return 0;
}

int hvd_agreement_unbind(struct hvd_agreement *agreement, struct hvd_entry *entry)
{
    if (entry->cached == NULL) {
        return 0;
    }
    entry->cached->mine = NULL;
    entry->cached = NULL;
    return hvd_hash_table_add(&agreement->unknown, entry->key.hash, entry);
}

/* Takes an entry out of both places. */
static void unregister(struct hvd_agreement *agreement, struct hvd_entry *entry)
{
    if (entry->cached != NULL) {
        entry->cached->mine = NULL;
        entry->cached = NULL;
    } else {
        hvd_hash_table_remove(&agreement->unknown, entry->key.hash, entry_has_key,
                              &entry->key);
    }
}

struct hvd_entry *hvd_agreement_entry(const struct hvd_agreement *agreement,
                                      const struct hvd_key *key)
{
    const struct hvd_cached_tensor *cached =
        hvd_tensor_cache_find(&agreement->cache, key);

    if (cached != NULL && cached->mine != NULL) {
        return cached->mine;
    }
    return hvd_hash_table_find(&agreement->unknown, key->hash, entry_has_key, key);
}

void hvd_agreement_end_entry(struct hvd_agreement *agreement, struct hvd_entry *entry,
                             int status, const char *text)
{
    unregister(agreement, entry);
    unlink_entry(agreement, entry);
    agreement->removals -= entry->proposal.kind == HVD_KIND_SET_REMOVE ? 1 : 0;
    agreement->ops->end(agreement->context, entry, status, text);
    if (agreement->ended_join != NULL) {
        hvd_agreement_end_join(agreement);
    }
}

/* Whether this rank has a tensor of the process set under way that entry is to remove, or runs a
 * batch of it: one that is void has no tensor. */
static bool is_in_use(const struct hvd_agreement *agreement,
                      const struct hvd_entry *removal)
{
    const struct hvd_replay *replay = hvd_replay_of(agreement, removal->proposal.root);

    for (const struct hvd_entry *entry = agreement->oldest; entry != NULL;
         entry = entry->newer) {
        if (entry->proposal.set == removal->proposal.root) {
            return true;
        }
    }
    return replay != NULL && replay->running > 0;
}

/* Removing a set is reported when this rank has done with it, so that no batch of it is left on
 * any rank when it goes. */
static int report_removals(struct hvd_agreement *agreement, int64_t now_ns)
{
    int status = 0;

    for (struct hvd_entry *entry = agreement->oldest;
         entry != NULL && status == 0 && agreement->deferred_removals > 0;
         entry = entry->newer) {
        if (entry->is_deferred && !is_in_use(agreement, entry)) {
            entry->is_deferred = false;
            agreement->deferred_removals--;
            status = hvd_agreement_report(agreement, entry, now_ns);
        }
    }
    return status;
}

/* Not a process set that this rank has asked to remove, or that is gone since the caller looked. */
static bool may_use(const struct hvd_agreement *agreement, int set)
{
    const struct hvd_set_members *found =
        hvd_membership_find(&agreement->membership, set);
    const struct hvd_entry *entry = agreement->removals > 0 ? agreement->oldest : NULL;

    while (entry != NULL && !(entry->proposal.kind == HVD_KIND_SET_REMOVE &&
                              entry->proposal.root == set)) {
        entry = entry->newer;
    }
    return entry == NULL && found != NULL && found->is_member;
}

static int submit_removal(struct hvd_agreement *agreement, struct hvd_entry *entry,
                          int64_t now_ns)
{
    agreement->removals++;
    if (is_in_use(agreement, entry)) {
        entry->is_deferred = true;
        agreement->deferred_removals++;
        return 0;
    }
    return hvd_agreement_report(agreement, entry, now_ns);
}

void hvd_agreement_end_join(struct hvd_agreement *agreement)
{
    struct hvd_entry *join = agreement->ended_join;

    for (const struct hvd_entry *entry = join->older; entry != NULL;
         entry = entry->older) {
        if (entry->proposal.set == HVD_SET_GLOBAL && entry->is_agreed) {
            return;
        }
    }
    agreement->ended_join = NULL;
    hvd_agreement_end_entry(agreement, join, 0, "");
}

static int submit_join(struct hvd_agreement *agreement, struct hvd_entry *entry,
                       int64_t now_ns)
{
    struct hvd_replay *replay = hvd_replay_of(agreement, HVD_SET_GLOBAL);

    agreement->join = entry;
    if (replay->is_active) { /* first the tensors that it has are to be reported */
        agreement->is_join_deferred = true;
        return hvd_replay_ask_break(agreement, replay, false);
    }
    return hvd_agreement_note_join(agreement, agreement->rank, now_ns);
}

/* Between the start and the end of its join a rank has told all others that it has nothing more for
 * the global process set. */
static bool is_after_join(const struct hvd_agreement *agreement,
                          const struct hvd_entry *entry)
{
    return entry->proposal.set == HVD_SET_GLOBAL &&
           (agreement->join != NULL || agreement->ended_join != NULL);
}

/* Ends what this rank must not submit now, which no other rank hears of. */
static bool refuse(struct hvd_agreement *agreement, struct hvd_entry *entry)
{
    char text[256];

    if (!may_use(agreement, entry->proposal.set)) {
        snprintf(text, sizeof(text), "The process set is being removed.");
    } else if (is_after_join(agreement, entry)) {
        snprintf(text, sizeof(text),
                 "rank %d submitted %.100s after it had joined: until its join has "
                 "ended, a rank may submit nothing to the global process set",
                 agreement->rank, entry->proposal.name);
    } else {
        return false;
    }
    agreement->ops->end(agreement->context, entry, HVD_ERR_ARG, text);
    return true;
}

int hvd_agreement_submit(struct hvd_agreement *agreement, struct hvd_entry *entry,
                         int64_t now_ns)
{
    struct hvd_cached_tensor *cached =
        hvd_tensor_cache_find(&agreement->cache, &entry->key);

    if (refuse(agreement, entry)) {
        return 0;
    }
    entry->proposal.rank = agreement->rank;
    if (entry->submitted_ns == 0) {
        entry->submitted_ns = now_ns;
    }
    link_entry(agreement, entry);
    if (cached != NULL && cached->replayed != NULL) {
        return hvd_replay_submit(agreement, entry, cached);
    }
    if (cached != NULL && hvd_proposal_equal(cached->proposal, &entry->proposal)) {
        cached->mine = entry;
        entry->cached = cached;
    } else if (hvd_hash_table_add(&agreement->unknown, entry->key.hash, entry) != 0) {
        return HVD_ERR_NOMEM;
    }
    switch (entry->proposal.kind) {
    case HVD_KIND_JOIN:
        return submit_join(agreement, entry, now_ns);
    case HVD_KIND_SET_REMOVE:
        return submit_removal(agreement, entry, now_ns);
    default:
        return hvd_agreement_report(agreement, entry, now_ns);
    }
}

void hvd_agreement_drop(struct hvd_agreement *agreement, bool all, int status,
                        const char *text)
{
    struct hvd_entry *entry = agreement->oldest;

    if (all) {
        agreement->ended_join = NULL; /* it ends like all others */
    }
    while (entry != NULL) {
        struct hvd_entry *next = entry->newer;

        if (all || (!entry->is_agreed && entry != agreement->ended_join)) {
            hvd_agreement_end_entry(agreement, entry, status, text);
        }
        entry = next;
    }
    agreement->join = NULL;
}

/* --- what is due --- */

static bool is_answer_due(const struct hvd_agreement *agreement, bool is_waited,
                          int64_t now_ns)
{
    const struct hvd_fusion *fusion = &agreement->settings.fusion;
    int64_t oldest = hvd_coordinator_oldest(agreement->coordinator);

    return oldest >= 0 &&
           (is_waited || now_ns - oldest >= fusion->cycle_ns ||
            hvd_coordinator_bytes(agreement->coordinator) >= fusion->threshold);
}

int hvd_agreement_progress(struct hvd_agreement *agreement, bool is_waited,
                           int64_t now_ns, bool *moved)
{
    uint64_t position = agreement->position;
    int status =
        agreement->deferred_removals > 0 ? report_removals(agreement, now_ns) : 0;

    status = status != 0 ? status : hvd_agreement_pass_up(agreement, now_ns);
    if (status == 0 && agreement->replays.waiting > 0 &&
        now_ns - agreement->last_look_ns >= look_every_ns) {
        agreement->last_look_ns = now_ns;
        status = hvd_replay_look(agreement, now_ns);
    }
    status = status != 0 ? status : hvd_stall_look(agreement, now_ns);
    if (status == 0 && hvd_agreement_is_root(agreement)) {
        if (is_answer_due(agreement, is_waited, now_ns)) {
            status = hvd_agreement_decide(agreement, now_ns);
        }
        status = status != 0 ? status : hvd_agreement_send_decisions(agreement, now_ns);
        *moved |= agreement->position > position;
    }
    return status != 0 ? status : hvd_agreement_flush(agreement, moved);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < 0 || b < a ? b : a;
}

int64_t hvd_agreement_deadline(const struct hvd_agreement *agreement, bool is_waited,
                               int64_t now_ns)
{
    const struct hvd_entry *oldest = hvd_stall_oldest(agreement);
    int64_t deadline = -1;

    if (hvd_agreement_is_root(agreement) &&
        hvd_coordinator_oldest(agreement->coordinator) >= 0) {
        deadline = hvd_coordinator_oldest(agreement->coordinator) +
                   agreement->settings.fusion.cycle_ns;
    }
    if (agreement->replays.waiting > 0) {
        deadline =
            earlier(deadline, now_ns + (is_waited ? look_every_ns : look_alone_every_ns));
    }
    if (oldest != NULL && agreement->settings.stall_warning_ns > 0) {
        int64_t due = oldest->submitted_ns + agreement->settings.stall_warning_ns;

        deadline = earlier(
            deadline, due > agreement->stall.next_ns ? due : agreement->stall.next_ns);
    }
    return deadline;
}

bool hvd_agreement_settle(struct hvd_agreement *agreement, int *status)
{
    bool is_settled = true;

    agreement->is_settling = true;
    for (int set = 0; set < agreement->replays.count && *status == 0; set++) {
        struct hvd_replay *replay = hvd_replay_of(agreement, set);

        if (replay != NULL && replay->is_active) {
            is_settled = false;
            *status = hvd_replay_put_break(agreement, replay);
        }
    }
    return is_settled;
}

const struct hvd_membership *
hvd_agreement_membership(const struct hvd_agreement *agreement)
{
    return &agreement->membership;
}

const struct hvd_fusion *hvd_agreement_fusion(const struct hvd_agreement *agreement)
{
    return &agreement->settings.fusion;
}

void hvd_agreement_count(const struct hvd_agreement *agreement,
                         struct hvd_agreement_counts *counts)
{
    *counts = agreement->counts;
}
