/* SPDX-License-Identifier: Apache-2.0 */
/* Aborts a process set. */
#include "collectives/agreement/set_aborts.h"

#include <stdio.h>

#include "collectives/agreement/agreement_state.h"
#include "pmix_boot/boot.h"

/* --- rank 0 --- */

/* Writes the decision, and drops the tensors of the set that are ready: nothing more is
 * decided on them. */
static int decide_abort(struct hvd_agreement *agreement, struct hvd_set *set)
{
    struct hvd_part part =
        hvd_part_begin(hvd_coordinator_writers(agreement->coordinator), set->id);

    hvd_put_record(part.writer, HVD_DECISION_ABORT, 1,
                   set->abort_status == HVD_ERR_MISMATCH ? 1 : 0);
    hvd_put_text(part.writer, set->abort_reason);
    hvd_part_end(&part);
    hvd_set_end_abort(set);
    hvd_ready_table_drop_set(&agreement->reports.ready_tensor, set);
    hvd_coordinator_drop_set(agreement->coordinator, set);
    return part.writer->failed ? HVD_ERR_NOMEM : 0;
}

int hvd_set_aborts_after_replay(struct hvd_agreement *agreement, struct hvd_set *set)
{
    return agreement->is_root && set->state == HVD_SET_ABORTING
               ? decide_abort(agreement, set)
               : 0;
}

/* Begins to abort the set, unless that has happened already: the first reason counts. */
static int abort_set(struct hvd_agreement *agreement, struct hvd_set *set, int status,
                     const char *reason)
{
    if (set->state != HVD_SET_ACTIVE) {
        return 0;
    }
    hvd_sets_begin_abort(agreement->sets, set, status, reason);
    return set->replay->is_active
               ? hvd_replay_decisions_break(
                     hvd_coordinator_replays(agreement->coordinator), set->id, false)
               : decide_abort(agreement, set);
}

int hvd_set_aborts_disagree(struct hvd_agreement *agreement, struct hvd_set *set,
                            const char *text)
{
    return abort_set(agreement, set, HVD_ERR_MISMATCH, text);
}

static int note_wish(struct hvd_agreement *agreement, int rank, struct hvd_set *set,
                     const char *why)
{
    char reason[HVD_ABORT_REASON];

    snprintf(reason, sizeof(reason),
             "process set %d has been aborted by rank %d on %.64s: %.280s", set->id, rank,
             agreement->settings.peers[rank].host, why);
    return abort_set(agreement, set, HVD_ERR_ABORTED, reason);
}

/* --- a member asks --- */

/* Passes the request of a member up; rank 0 aborts the set. */
static int ask_for_abort(struct hvd_agreement *agreement, int rank, struct hvd_set *set,
                         const char *why)
{
    struct hvd_writer *up;

    if (agreement->is_root) {
        return note_wish(agreement, rank, set, why);
    }
    up = hvd_reports_put(&agreement->reports, HVD_REPORT_ABORT, 1, (uint64_t)rank);
    hvd_put_int(up, set->id);
    hvd_put_text(up, why);
    return 0;
}

int hvd_set_aborts_submit(struct hvd_agreement *agreement, struct hvd_entry *entry)
{
    if (entry->set->state == HVD_SET_ABORTED) {
        hvd_tensor_table_end(agreement->tensors, entry, 0, "");
        return 0;
    }
    return ask_for_abort(agreement, agreement->rank, entry->set, entry->descriptor.note);
}

int hvd_set_aborts_take_wish(struct hvd_agreement *agreement,
                             struct hvd_branch_message *message, uint64_t rank)
{
    int64_t id = hvd_take_int(&message->reader);
    const char *why = hvd_take_text(&message->reader);
    struct hvd_set *set =
        id >= 0 && id <= INT32_MAX ? hvd_sets_find(agreement->sets, (int)id) : NULL;

    /* The set still exists, because members ask for its removal only after the abort. */
    if (message->reader.failed || set == NULL || set->is_permanent ||
        !hvd_sets_is_in_branch(agreement->sets, rank, message->branch) ||
        hvd_set_index(set, (int)rank) < 0) {
        return HVD_ERR_NET;
    }
    return ask_for_abort(agreement, (int)rank, set, why);
}

/* --- the decision --- */

/* Ends the entries of this rank in the set that are in no batch, except for the removal
 * of the set. */
static void end_entries(struct hvd_agreement *agreement, const struct hvd_set *set)
{
    struct hvd_entry *entry = agreement->tensors->oldest;

    while (entry != NULL) {
        struct hvd_entry *next = entry->newer;

        if (entry->set == set && !entry->is_agreed &&
            hvd_set_fails(set, &entry->descriptor)) {
            bool has_asked = entry->descriptor.kind == HVD_KIND_SET_ABORT;

            hvd_tensor_table_end(agreement->tensors, entry,
                                 has_asked ? 0 : set->abort_status,
                                 has_asked ? "" : set->abort_reason);
        }
        entry = next;
    }
}

int hvd_set_aborts_take(struct hvd_agreement *agreement, struct hvd_set *set,
                        bool ranks_disagree, struct hvd_reader *reader)
{
    const char *reason = hvd_take_text(reader);

    if (reader->failed || set == NULL || (set->is_permanent && !ranks_disagree) ||
        set->replay->is_active || (set->state != HVD_SET_ACTIVE) != agreement->is_root) {
        return HVD_ERR_NET;
    }
    if (set->state == HVD_SET_ACTIVE) {
        hvd_sets_begin_abort(agreement->sets, set,
                             ranks_disagree ? HVD_ERR_MISMATCH : HVD_ERR_ABORTED, reason);
        hvd_set_end_abort(set);
    }
    hvd_ready_table_drop_set(&agreement->reports.ready_tensor, set);
    end_entries(agreement, set);
    if (!set->is_permanent) {
        hvd_event_queue_put_set(&agreement->events, HVD_AGREEMENT_ABORT_SET, set);
    }
    return 0;
}
