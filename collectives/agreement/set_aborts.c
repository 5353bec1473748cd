/* SPDX-License-Identifier: Apache-2.0 */
/* How a member aborts a process set. */
#include "collectives/agreement/set_aborts.h"

#include <stdio.h>
#include <string.h>

#include "collectives/agreement/agreement_state.h"
#include "pmix_boot/boot.h"

/* --- rank 0 --- */

/* What members have of the set is forgotten before the decision is sent, for none of it is decided any
 * more. */
static int decide(struct hvd_agreement *agreement, struct hvd_aborted_set *aborted)
{
    struct hvd_part part =
        hvd_part_begin(hvd_coordinator_writers(agreement->coordinator), aborted->set);

    hvd_put_record(part.writer, HVD_DECISION_ABORT, 1, aborted->ranks_disagree ? 1 : 0);
    hvd_put_text(part.writer, aborted->reason);
    hvd_part_end(&part);
    aborted->is_decided = true;
    hvd_readiness_table_drop_set(&agreement->reports.readiness, aborted->set);
    hvd_coordinator_drop_set(agreement->coordinator, aborted->set);
    return part.writer->failed ? HVD_ERR_NOMEM : 0;
}

int hvd_set_aborts_after_replay(struct hvd_agreement *agreement, int set)
{
    struct hvd_aborted_set *aborted =
        hvd_aborted_sets_find(&agreement->aborted_sets, set);

    return agreement->is_root && aborted != NULL && !aborted->is_decided
               ? decide(agreement, aborted)
               : 0;
}

/* The first of several reasons remains. */
static int abort_set(struct hvd_agreement *agreement, int set, bool ranks_disagree,
                     const char *reason)
{
    struct hvd_aborted_set *aborted;

    if (hvd_aborted_sets_find(&agreement->aborted_sets, set) != NULL) {
        return 0;
    }
    aborted = hvd_aborted_sets_add(&agreement->aborted_sets, set);
    if (aborted == NULL) {
        return HVD_ERR_NOMEM;
    }
    aborted->ranks_disagree = ranks_disagree;
    snprintf(aborted->reason, sizeof(aborted->reason), "%s", reason);
    return hvd_replay_of(agreement, set)->is_active
               ? hvd_coordinator_break(agreement->coordinator, set, false)
               : decide(agreement, aborted);
}

int hvd_set_aborts_disagree(struct hvd_agreement *agreement, int set, const char *text)
{
    return abort_set(agreement, set, true, text);
}

static int note_wish(struct hvd_agreement *agreement, int rank, int set, const char *why)
{
    char reason[HVD_ABORT_REASON];

    snprintf(reason, sizeof(reason),
             "process set %d has been aborted by rank %d on %.64s: %.280s", set, rank,
             agreement->settings.peers[rank].host, why);
    return abort_set(agreement, set, false, reason);
}

/* --- a member asks --- */

/* rank: a member. */
static int ask(struct hvd_agreement *agreement, int rank, int set, const char *why)
{
    struct hvd_writer *up;

    if (agreement->is_root) {
        return note_wish(agreement, rank, set, why);
    }
    up = hvd_reports_put(&agreement->reports, HVD_REPORT_ABORT, 1, (uint64_t)rank);
    hvd_put_int(up, set);
    hvd_put_text(up, why);
    return 0;
}

int hvd_set_aborts_submit(struct hvd_agreement *agreement, struct hvd_entry *entry)
{
    int set = entry->proposal.set;

    if (hvd_aborted_sets_reason(&agreement->aborted_sets, set) != NULL) {
        hvd_tensor_table_end(agreement->tensors, entry, 0, "");
        return 0;
    }
    return ask(agreement, agreement->rank, set, entry->proposal.note);
}

int hvd_set_aborts_take_wish(struct hvd_agreement *agreement,
                             struct hvd_branch_message *message, uint64_t rank)
{
    int64_t set = hvd_take_int(&message->reader);
    const char *why = hvd_take_text(&message->reader);
    const struct hvd_set *members = set > HVD_SET_GLOBAL && set <= INT32_MAX
                                        ? hvd_sets_find(agreement->sets, (int)set)
                                        : NULL;

    /* A member asks while the set is there, and says that it has done with it later. */
    if (message->reader.failed || members == NULL ||
        !hvd_sets_is_in_branch(agreement->sets, rank, message->branch) ||
        hvd_set_index(members, (int)rank) < 0) {
        return HVD_ERR_NET;
    }
    return ask(agreement, (int)rank, (int)set, why);
}

/* --- what comes of it --- */

/* Ends what this rank has in the set and does not run, but for the set's removal. */
static void end_entries(struct hvd_agreement *agreement, int set, const char *reason)
{
    int failed = hvd_aborted_sets_status(&agreement->aborted_sets, set);
    struct hvd_entry *entry = agreement->tensors->oldest;

    while (entry != NULL) {
        struct hvd_entry *next = entry->newer;

        if (entry->proposal.set == set && !entry->is_agreed &&
            hvd_proposal_ends_with_set(&entry->proposal)) {
            bool has_asked = entry->proposal.kind == HVD_KIND_SET_ABORT;

            hvd_tensor_table_end(agreement->tensors, entry, has_asked ? 0 : failed,
                                 has_asked ? "" : reason);
        }
        entry = next;
    }
}

int hvd_set_aborts_take(struct hvd_agreement *agreement, int set, bool ranks_disagree,
                        struct hvd_reader *reader)
{
    const char *reason = hvd_take_text(reader);
    const struct hvd_replay *replay = hvd_replay_of(agreement, set);
    struct hvd_aborted_set *aborted =
        hvd_aborted_sets_find(&agreement->aborted_sets, set);

    if (reader->failed || (set == HVD_SET_GLOBAL && !ranks_disagree) || replay == NULL ||
        replay->is_active || (aborted != NULL) != agreement->is_root) {
        return HVD_ERR_NET;
    }
    if (aborted == NULL) {
        aborted = hvd_aborted_sets_add(&agreement->aborted_sets, set);
        if (aborted == NULL) {
            return HVD_ERR_NOMEM;
        }
        snprintf(aborted->reason, sizeof(aborted->reason), "%s", reason);
        aborted->ranks_disagree = ranks_disagree;
        aborted->is_decided = true;
    }
    hvd_readiness_table_drop_set(&agreement->reports.readiness, set);
    end_entries(agreement, set, aborted->reason);
    if (set != HVD_SET_GLOBAL) {
        const struct hvd_agreement_event event = {
            .kind = HVD_AGREEMENT_ABORT_SET,
            .data = aborted->reason,
            .bytes = strlen(aborted->reason) + 1,
            .set = hvd_sets_find(agreement->sets, set),
        };

        hvd_event_queue_put(&agreement->events, &event, NULL);
    }
    return 0;
}
