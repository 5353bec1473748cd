/* SPDX-License-Identifier: Apache-2.0 */
/* Reports: this rank's own, those from below, and what goes on to the parent. */
#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/agreement_state.h"

/* A message begins with the sender's position, filled in when it is sent. */
static void begin_up(struct hvd_agreement *agreement)
{
    if (agreement->up.bytes == 0) {
        hvd_put_int(&agreement->up, 0);
    }
}

void hvd_agreement_put_up(struct hvd_agreement *agreement, enum hvd_report_kind kind,
                          uint32_t count, uint64_t id)
{
    begin_up(agreement);
    hvd_put_ids_end(&agreement->up, HVD_REPORT_CACHED, &agreement->up_range);
    hvd_put_record(&agreement->up, kind, count, id);
}

int hvd_agreement_flush(struct hvd_agreement *agreement, bool *moved)
{
    struct hvd_writer *up = &agreement->up;
    int status;

    /* A child that is silent for long would keep evicted tensors in its parent's memory. */
    if (up->bytes == 0 && agreement->position > agreement->said_position + 1024 &&
        agreement->rank != 0) {
        begin_up(agreement);
    }
    if (up->bytes == 0) {
        return 0;
    }
    hvd_put_ids_end(up, HVD_REPORT_CACHED, &agreement->up_range);
    if (up->failed) {
        return HVD_ERR_NOMEM;
    }
    memcpy(up->data, &agreement->position, sizeof(agreement->position));
    agreement->said_position = agreement->position;
    agreement->counts.messages_up++;
    agreement->counts.bytes_sent += up->bytes;
    status = agreement->ops->send_up(agreement->context, up->data, up->bytes);
    up->bytes = 0;
    *moved = true;
    return status;
}

int hvd_agreement_report_own(struct hvd_agreement *agreement, const struct hvd_key *key,
                             const struct hvd_tensor_report *report, int64_t now_ns)
{
    return hvd_readiness_table_add(&agreement->readiness_table, key, 0, report, now_ns);
}

int hvd_agreement_report(struct hvd_agreement *agreement, struct hvd_entry *entry,
                         int64_t now_ns)
{
    const struct hvd_proposal *proposal = &entry->proposal;
    struct hvd_rows rows = {.rank = agreement->rank};
    struct hvd_tensor_report report = {
        .cached = entry->cached,
        .proposal = entry->cached == NULL ? proposal : NULL,
        .max_block = proposal->max_block,
    };

    if (proposal->kind == HVD_KIND_ALLGATHER && proposal->ndim > 0) {
        rows.rows = proposal->shape[0];
        report.rows = &rows;
        report.row_count = 1;
    }
    return hvd_agreement_report_own(agreement, &entry->key, &report, now_ns);
}

static void put_readiness_up(struct hvd_agreement *agreement,
                             const struct hvd_readiness *readiness)
{
    bool is_bare = readiness->cached != NULL && !readiness->cached->is_evicted &&
                   readiness->described == 0 && !readiness->is_partial &&
                   readiness->row_count == 0 && readiness->max_block == 0;

    begin_up(agreement);
    if (is_bare) {
        hvd_put_id(&agreement->up, HVD_REPORT_CACHED, &agreement->up_range,
                   readiness->cached->id);
        return;
    }
    hvd_put_ids_end(&agreement->up, HVD_REPORT_CACHED, &agreement->up_range);
    hvd_put_readiness(&agreement->up, readiness);
}

int hvd_agreement_pass_up(struct hvd_agreement *agreement, int64_t now_ns)
{
    struct hvd_readiness *readiness;
    bool moved;
    int status = 0;

    while (status == 0 &&
           (readiness = hvd_readiness_table_take(&agreement->readiness_table)) != NULL) {
        if (!hvd_agreement_is_root(agreement)) {
            put_readiness_up(agreement, readiness);
            hvd_readiness_table_give_back(&agreement->readiness_table, readiness);
            if (agreement->up.bytes >= HVD_MESSAGE_BYTES) {
                status = hvd_agreement_flush(agreement, &moved);
            }
        } else { /* which takes the readiness record over */
            status = hvd_replay_admit(agreement, readiness, now_ns);
        }
    }
    return status;
}

/* --- from below --- */

/* A report of a tensor that its sender has learned to be replayed since. */
static bool is_outdated(const struct hvd_cached_tensor *cached, uint64_t position)
{
    return cached != NULL && position < cached->replayed_at;
}

/* For those who want to see which ranks have a tensor. */
static void tell_heard(const struct hvd_agreement *agreement, int branch,
                       const struct hvd_tensor_report *report)
{
    if (agreement->ops->heard != NULL && hvd_agreement_is_root(agreement)) {
        agreement->ops->heard(
            agreement->context,
            report->cached != NULL ? report->cached->proposal : report->proposal, branch);
    }
}

static int take_cached(struct hvd_agreement *agreement, int branch,
                       const struct hvd_record *record, uint64_t position, int64_t now_ns)
{
    for (uint32_t i = 0; i < record->count; i++) {
        struct hvd_cached_tensor *cached =
            hvd_tensor_cache_by_id(&agreement->cache, record->id + i);
        struct hvd_tensor_report report = {.cached = cached};
        int status;

        if (cached == NULL) {
            return HVD_ERR_NET;
        }
        if (is_outdated(cached, position)) {
            continue;
        }
        status = hvd_readiness_table_add(&agreement->readiness_table, &cached->key,
                                         branch, &report, now_ns);
        if (status != 0) {
            return status;
        }
        tell_heard(agreement, branch, &report);
    }
    return 0;
}

/* One tensor, with all that its branch says of it. */
static int take_tensor(struct hvd_agreement *agreement, int branch,
                       struct hvd_reader *reader, struct hvd_record record,
                       uint64_t position, int64_t now_ns)
{
    struct hvd_proposal *proposal = malloc(sizeof(*proposal));
    struct hvd_tensor_report report = {0};
    struct hvd_key key = {0};
    int status = proposal != NULL ? 0 : HVD_ERR_NOMEM;
    bool is_first = true;

    while (status == 0 && (is_first || report.has_more)) {
        if (!is_first && hvd_take_record(reader, &record) != 0) {
            status = HVD_ERR_NET;
            break;
        }
        status = hvd_take_tensor_report(reader, &record, proposal, &report);
        if (status == 0 && record.id != 0) {
            report.cached = hvd_tensor_cache_by_id(&agreement->cache, record.id);
            status = report.cached != NULL ? 0 : HVD_ERR_NET;
        }
        if (status == 0 && is_first) {
            key = report.cached != NULL ? report.cached->key
                                        : hvd_key_make(proposal->set, proposal->name);
        }
        if (status == 0 &&
            !is_outdated(hvd_tensor_cache_find(&agreement->cache, &key), position)) {
            status = hvd_readiness_table_add(&agreement->readiness_table, &key, branch,
                                             &report, now_ns);
            if (status == 0 && is_first) {
                tell_heard(agreement, branch, &report);
            }
        }
        is_first = false;
    }
    free(proposal);
    return status;
}

/* What a branch reported before it had nothing more to report must go up first: hence the order. */
int hvd_agreement_note_join(struct hvd_agreement *agreement, int rank, int64_t now_ns)
{
    int status;

    hvd_membership_join(&agreement->membership, rank);
    hvd_readiness_table_recheck(&agreement->readiness_table);
    status = hvd_agreement_pass_up(agreement, now_ns);
    if (!hvd_agreement_is_root(agreement)) {
        hvd_agreement_put_up(agreement, HVD_REPORT_JOIN, 1, (uint64_t)rank);
        return status;
    }
    agreement->last_joined = rank;
    return status;
}

static int take_report(struct hvd_agreement *agreement, int branch,
                       struct hvd_reader *reader, uint64_t position, int64_t now_ns)
{
    struct hvd_record record;
    const void *data;

    if (hvd_take_record(reader, &record) != 0) {
        return HVD_ERR_NET;
    }
    switch (record.kind) {
    case HVD_REPORT_CACHED:
        return take_cached(agreement, branch, &record, position, now_ns);
    case HVD_REPORT_TENSOR:
        return take_tensor(agreement, branch, reader, record, position, now_ns);
    case HVD_REPORT_JOIN:
        return position < hvd_replay_of(agreement, HVD_SET_GLOBAL)
                              ->begun_at /* it comes again: replay.h */
                   ? 0
                   : hvd_agreement_note_join(agreement, (int)record.id, now_ns);
    case HVD_REPORT_BREAK:
        return hvd_replay_take_break(agreement, &record, reader);
    case HVD_REPORT_FROZEN:
        return hvd_replay_take_frozen(agreement, &record, reader);
    case HVD_REPORT_STALL:
        if (hvd_agreement_is_root(agreement)) {
            return hvd_stall_put_ask(agreement, now_ns);
        }
        hvd_agreement_put_up(agreement, HVD_REPORT_STALL, 1, 0);
        return 0;
    case HVD_REPORT_HELD:
        data = hvd_take(reader, (size_t)record.id);
        return data == NULL ? HVD_ERR_NET
                            : hvd_stall_held(agreement, data, (size_t)record.id);
    default:
        return HVD_ERR_NET;
    }
}

static void forget_evicted(struct hvd_agreement *agreement)
{
    uint64_t least = agreement->position;

    for (int i = 1; i < agreement->membership.branches; i++) {
        /* One that has seen all that it was sent needs nothing older. */
        bool has_all = agreement->seen_by[i] >= agreement->sent_to[i];

        least = !has_all && agreement->seen_by[i] < least ? agreement->seen_by[i] : least;
    }
    hvd_tensor_cache_forget(&agreement->cache, least);
}

int hvd_agreement_from_below(struct hvd_agreement *agreement, int branch,
                             const void *payload, size_t bytes, int64_t now_ns)
{
    struct hvd_reader reader = {.data = payload, .bytes = bytes};
    uint64_t position = (uint64_t)hvd_take_int(&reader);
    int status = reader.failed ? HVD_ERR_NET : 0;

    agreement->counts.received++;
    agreement->counts.bytes_received += bytes;
    if (status == 0) {
        agreement->seen_by[branch] = position;
        forget_evicted(agreement);
    }
    while (status == 0 && reader.bytes > 0) {
        status = take_report(agreement, branch, &reader, position, now_ns);
    }
    return status == HVD_ERR_ARG ? HVD_ERR_NET : status;
}
