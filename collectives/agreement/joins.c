/* SPDX-License-Identifier: Apache-2.0 */
/* Joins: a rank tells the others that it has no more data. */
#include "collectives/agreement/joins.h"

#include "collectives/agreement/agreement_state.h"

/* Passes the tensors up first: a branch reports its last tensors before its join, and
 * this order must be kept on the way up. */
int hvd_joins_note(struct hvd_agreement *agreement, int rank, int64_t now_ns)
{
    int status;

    hvd_sets_join(agreement->sets, rank);
    hvd_ready_table_recheck(&agreement->reports.ready_tensor);
    if (agreement->is_root) {
        hvd_coordinator_join(agreement->coordinator, rank);
        return hvd_coordinator_admit(agreement->coordinator, now_ns);
    }
    status = hvd_reports_pass_up(agreement);
    hvd_reports_put(&agreement->reports, HVD_REPORT_JOIN, 1, (uint64_t)rank);
    return status;
}

int hvd_joins_submit(struct hvd_agreement *agreement, struct hvd_entry *entry,
                     int64_t now_ns)
{
    struct hvd_replay *replay = agreement->sets->global->replay;

    agreement->joins.own = entry;
    if (replay->is_active) { /* the tensors of the replay must be reported first */
        agreement->joins.is_deferred = true;
        return hvd_replay_ask_break(agreement, replay, false);
    }
    return hvd_joins_note(agreement, agreement->rank, now_ns);
}

/* Rank 0 announces a replay only while no rank has joined. If a rank joins at the same
 * moment, its JOIN crosses the announcement and is ignored. The rank repeats it when the
 * replay has ended and the tensors that it still has have been reported. */
int hvd_joins_on_replay(struct hvd_agreement *agreement)
{
    hvd_sets_join_over(agreement->sets);
    if (agreement->joins.own == NULL) {
        return 0;
    }
    agreement->joins.is_deferred = true;
    return hvd_replay_ask_break(agreement, agreement->sets->global->replay, false);
}

int hvd_joins_after_replay(struct hvd_agreement *agreement, int64_t now_ns)
{
    if (!agreement->joins.is_deferred) {
        return 0;
    }
    agreement->joins.is_deferred = false;
    return hvd_joins_note(agreement, agreement->rank, now_ns);
}

int hvd_joins_take_end(struct hvd_agreement *agreement,
                       const struct hvd_batch_header *header)
{
    struct hvd_entry *own = agreement->joins.own;

    if (own == NULL || header->value < 0 ||
        header->value >= agreement->sets->layout->size) {
        return HVD_ERR_NET;
    }
    hvd_sets_join_over(agreement->sets);
    agreement->joins.own = NULL;
    own->request->value = header->value;
    agreement->joins.ended = own;
    hvd_joins_end_own(agreement);
    return 0;
}

void hvd_joins_end_own(struct hvd_agreement *agreement)
{
    struct hvd_entry *join = agreement->joins.ended;

    for (const struct hvd_entry *entry = join->older; entry != NULL;
         entry = entry->older) {
        if (entry->set == agreement->sets->global && entry->is_agreed) {
            return;
        }
    }
    agreement->joins.ended = NULL;
    hvd_tensor_table_end(agreement->tensors, join, 0, "");
}

void hvd_joins_drop(struct hvd_joins *joins, bool all)
{
    joins->own = NULL;
    if (all) {
        joins->ended = NULL;
    }
}
