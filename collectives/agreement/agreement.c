/* SPDX-License-Identifier: Apache-2.0 */
/* Lifetime of an agreement, submissions, messages, and timed work. */
#include "collectives/agreement/agreement.h"

#include <stdio.h>
#include <stdlib.h>

#include "collectives/agreement/agreement_state.h"
#include "collectives/agreement/agreed_batch.h"
#include "collectives/agreement/set_aborts.h"

static int create_coordinator(struct hvd_agreement *agreement, struct hvd_error *err)
{
    const struct hvd_coordinator_config config = {
        .table = &agreement->reports.ready_tensor,
        .cache = &agreement->cache,
        .fusion = &agreement->settings.fusion,
        .may_replay = agreement->settings.may_replay,
    };

    return hvd_coordinator_create(&config, &agreement->coordinator, err);
}

int hvd_agreement_create(const struct hvd_agreement_settings *settings,
                         struct hvd_agreement **out, struct hvd_error *err)
{
    struct hvd_agreement *agreement = calloc(1, sizeof(*agreement));
    int status = 0;

    if (agreement == NULL) {
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for the agreement");
    }
    agreement->settings = *settings;
    agreement->tensors = settings->tensors;
    agreement->sets = settings->sets;
    hvd_response_cache_init(&agreement->cache, settings->tensors);
    agreement->rank = settings->sets->rank;
    agreement->is_root = agreement->rank == 0;
    agreement->set_creations.sets = agreement->sets;
    hvd_reports_init(&agreement->reports, agreement->sets);
    if (agreement->is_root) {
        status = create_coordinator(agreement, err);
    }
    if (status == 0 && (hvd_relay_init(agreement) != 0 ||
                        hvd_replay_add(agreement, agreement->sets->global) != 0)) {
        status = hvd_fail(err, HVD_ERR_NOMEM, "no memory for the agreement");
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
    hvd_reports_finish(&agreement->reports);
    hvd_relay_finish(&agreement->relay);
    hvd_response_cache_finish(&agreement->cache);
    hvd_set_creations_finish(&agreement->set_creations);
    hvd_call_order_finish(&agreement->call_order);
    hvd_stall_inspector_finish(&agreement->stall_inspector);
    hvd_event_queue_finish(&agreement->events);
    hvd_writer_finish(&agreement->decisions);
    free(agreement);
}

void hvd_agreement_watch(struct hvd_agreement *agreement, bool wants_heard)
{
    agreement->wants_heard = wants_heard && agreement->is_root;
}

/* --- submissions --- */

/* Whether this rank may submit to the set: it is a member and has not asked to remove the
 * set. To the global set it may submit only until its join, except for the creation of
 * another set, which does not depend on the join. */
static bool may_submit(const struct hvd_agreement *agreement, const struct hvd_set *set,
                       const struct hvd_descriptor *descriptor)
{
    const struct hvd_joins *joins = &agreement->joins;

    return set != NULL && set->is_member &&
           (!set->has_joins || descriptor->kind == HVD_KIND_SET_CREATE ||
            (joins->own == NULL && joins->ended == NULL)) &&
           !hvd_set_refuses(set, descriptor) &&
           (agreement->tensors->removals == 0 ||
            !hvd_set_changes_is_removing(agreement, set->id));
}

/* Ends an entry that this rank must not submit now. Nothing is sent to other ranks. */
static void refuse_entry(struct hvd_agreement *agreement, struct hvd_entry *entry)
{
    const struct hvd_set *set = entry->set;
    char text[256];

    if (set != NULL && hvd_set_refuses(set, &entry->descriptor)) {
        hvd_tensor_table_end(agreement->tensors, entry, set->abort_status,
                             set->abort_reason);
        return;
    }
    if (set != NULL && set->has_joins) {
        snprintf(text, sizeof(text),
                 "rank %d submitted %.100s after it had joined: until its join has "
                 "ended, a rank may submit nothing to the global process set",
                 agreement->rank, entry->descriptor.name);
    } else {
        snprintf(text, sizeof(text), "The process set is being removed.");
    }
    hvd_tensor_table_end(agreement->tensors, entry, HVD_ERR_ARG, text);
}

int hvd_agreement_submit(struct hvd_agreement *agreement, struct hvd_entry *entry,
                         int64_t now_ns)
{
    struct hvd_cached_tensor *cached = entry->tensor->cached;

    entry->set = hvd_sets_find(agreement->sets, entry->descriptor.set);
    if (!may_submit(agreement, entry->set, &entry->descriptor)) {
        refuse_entry(agreement, entry);
        return 0;
    }
    entry->descriptor.rank = agreement->rank;
    if (entry->submitted_ns == 0) {
        entry->submitted_ns = now_ns;
    }
    hvd_tensor_table_enter(agreement->tensors, entry);
    if (entry->descriptor.call != 0 && hvd_call_order_add(agreement, entry) != 0) {
        return HVD_ERR_NOMEM;
    }
    if (cached != NULL && cached->replayed != NULL) {
        entry->cached = cached;
        return hvd_replay_submit(agreement, entry->set->replay, entry);
    }
    if (cached != NULL && hvd_descriptor_equal(cached->descriptor, &entry->descriptor)) {
        entry->cached = cached;
    }
    switch (entry->descriptor.kind) {
    case HVD_KIND_JOIN:
        return hvd_joins_submit(agreement, entry, now_ns);
    case HVD_KIND_SET_REMOVE:
        return hvd_set_changes_submit_removal(agreement, entry);
    case HVD_KIND_SET_CREATE:
        return hvd_set_changes_submit_creation(agreement, entry);
    case HVD_KIND_SET_ABORT:
        return hvd_set_aborts_submit(agreement, entry);
    default:
        return hvd_reports_submit(agreement, entry);
    }
}

int hvd_agreement_finish(struct hvd_agreement *agreement, struct hvd_batch *batch)
{
    for (int64_t i = 0; i < batch->header.count; i++) {
        struct hvd_entry *entry = batch->entries[i];

        if (!entry->is_zeros) {
            batch->entries[i] = NULL; /* its owner may free it now */
            hvd_tensor_table_end(agreement->tensors, entry, 0, "");
        }
    }
    if (agreement->joins.ended != NULL) {
        hvd_joins_end_own(agreement);
    }
    return hvd_replay_finish_batch(agreement, batch);
}

void hvd_agreement_drop(struct hvd_agreement *agreement, bool all, int status,
                        const char *text)
{
    const struct hvd_entry *ended_join = all ? NULL : agreement->joins.ended;
    struct hvd_entry *entry = agreement->tensors->oldest;

    if (all) {
        hvd_event_queue_drop(&agreement->events);
        agreement->has_message = false;
    }
    while (entry != NULL) {
        struct hvd_entry *next = entry->newer;

        if (all || (!entry->is_agreed && entry != ended_join)) {
            hvd_tensor_table_end(agreement->tensors, entry, status, text);
        }
        entry = next;
    }
    hvd_joins_drop(&agreement->joins, all);
}

/* --- messages from below --- */

/* Notes that a rank in a branch has joined. Ignores joins that were sent before a replay
 * began, because those ranks send their joins again (joins.c). */
static int take_join(struct hvd_agreement *agreement,
                     const struct hvd_branch_message *message, uint64_t rank)
{
    if (!hvd_sets_is_in_branch(agreement->sets, rank, message->branch)) {
        return HVD_ERR_NET;
    }
    return message->position < agreement->sets->global->replay->begun_at
               ? 0
               : hvd_joins_note(agreement, (int)rank, message->now_ns);
}

static int take_report(struct hvd_agreement *agreement,
                       struct hvd_branch_message *message)
{
    struct hvd_record record;
    const void *data;

    if (hvd_take_record(&message->reader, &record) != 0) {
        return HVD_ERR_NET;
    }
    switch (record.kind) {
    case HVD_REPORT_CACHED:
        return hvd_reports_take_cached(agreement, message, &record);
    case HVD_REPORT_TENSOR:
        return hvd_reports_take_tensor(agreement, message, record);
    case HVD_REPORT_SILENT:
        return hvd_stall_inspector_take_silent(agreement, message->branch, &record);
    case HVD_REPORT_JOIN:
        return take_join(agreement, message, record.id);
    case HVD_REPORT_BREAK:
        return hvd_replay_take_break(agreement, &record, &message->reader);
    case HVD_REPORT_FROZEN:
        return hvd_replay_take_frozen(agreement, &record, &message->reader);
    case HVD_REPORT_CREATE:
        return hvd_set_changes_take_wish(agreement, message, record.id);
    case HVD_REPORT_ABORT:
        return hvd_set_aborts_take_wish(agreement, message, record.id);
    case HVD_REPORT_CALL:
        return hvd_call_order_take(agreement, message, &record);
    case HVD_REPORT_STACK:
        return hvd_late_stacks_take_answer(agreement, message, &record);
    case HVD_REPORT_STALL:
        return hvd_stall_inspector_report(agreement, message->now_ns);
    case HVD_REPORT_HELD:
        data = hvd_take(&message->reader, (size_t)record.id);
        return data == NULL ? HVD_ERR_NET
                            : hvd_stall_inspector_take_list(agreement, message->branch,
                                                            &record, data);
    default:
        return HVD_ERR_NET;
    }
}

int hvd_agreement_from_below(struct hvd_agreement *agreement, int branch,
                             const void *payload, size_t bytes, int64_t now_ns)
{
    struct hvd_branch_message message = {
        .branch = branch,
        .reader = {.data = payload, .bytes = bytes},
        .now_ns = now_ns,
    };
    int status;

    message.position = (uint64_t)hvd_take_int(&message.reader);
    status = message.reader.failed ||
                     !hvd_relay_may_have_seen(&agreement->relay, branch, message.position)
                 ? HVD_ERR_NET
                 : 0;
    agreement->counts.received++;
    agreement->counts.bytes_received += bytes;
    if (status == 0) {
        hvd_relay_note_seen(agreement, branch, message.position);
    }
    while (status == 0 && message.reader.bytes > 0) {
        status = take_report(agreement, &message);
    }
    return status == HVD_ERR_ARG ? HVD_ERR_NET : status;
}

/* --- messages from above --- */

static int take_eviction(struct hvd_agreement *agreement, uint64_t id)
{
    struct hvd_cached_tensor *cached = hvd_response_cache_by_id(&agreement->cache, id);

    if (cached == NULL || cached->is_evicted || cached->replayed != NULL) {
        return HVD_ERR_NET;
    }
    if (cached->tensor->entry != NULL && cached->tensor->entry->cached == cached) {
        /* the entry is now reported with its full description */
        cached->tensor->entry->cached = NULL;
    }
    hvd_response_cache_evict(&agreement->cache, cached, agreement->relay.position);
    if (agreement->is_root) {
        hvd_replay_decisions_note_eviction(
            hvd_coordinator_replays(agreement->coordinator), cached);
    }
    return 0;
}

static int take_settings(struct hvd_agreement *agreement, struct hvd_reader *reader)
{
    int64_t threshold = hvd_take_int(reader), cycle_ns = hvd_take_int(reader);

    if (reader->failed || threshold < 0 || cycle_ns < 0) {
        return HVD_ERR_NET;
    }
    agreement->settings.fusion.threshold = threshold;
    agreement->settings.fusion.cycle_ns = cycle_ns;
    return 0;
}

static int begin_replay(struct hvd_agreement *agreement, struct hvd_replay *replay,
                        const struct hvd_record *record, struct hvd_reader *reader)
{
    int status = hvd_replay_begin(agreement, replay, record, reader);

    return status == 0 && replay->set->has_joins ? hvd_joins_on_replay(agreement)
                                                 : status;
}

static int resume_replay(struct hvd_agreement *agreement, struct hvd_replay *replay,
                         const struct hvd_record *record, struct hvd_reader *reader,
                         int64_t now_ns)
{
    int status = hvd_replay_resume(agreement, replay, record, reader, now_ns);

    if (status != 0 || replay == NULL) {
        return status;
    }
    status = hvd_set_aborts_after_replay(agreement, replay->set);
    if (status != 0) {
        return status;
    }
    status = hvd_call_order_after_replay(agreement, replay->set->id);
    if (status != 0) {
        return status;
    }
    return replay->set->has_joins ? hvd_joins_after_replay(agreement, now_ns) : 0;
}

static int take_decision(struct hvd_agreement *agreement, int set,
                         struct hvd_reader *reader, int64_t now_ns)
{
    struct hvd_record record;

    if (hvd_take_record(reader, &record) != 0) {
        return HVD_ERR_NET;
    }
    switch (record.kind) {
    case HVD_DECISION_BATCH:
        return hvd_agreed_batch_take(agreement, &record, reader, now_ns);
    case HVD_DECISION_EVICT:
        return take_eviction(agreement, record.id);
    case HVD_DECISION_REPLAY:
        return begin_replay(agreement, hvd_replay_of(agreement, set), &record, reader);
    case HVD_DECISION_BREAK:
        return hvd_replay_freeze(agreement, hvd_replay_of(agreement, set), record.id);
    case HVD_DECISION_RESUME:
        return resume_replay(agreement, hvd_replay_of(agreement, set), &record, reader,
                             now_ns);
    case HVD_DECISION_ASK:
        return hvd_stall_inspector_answer(agreement, record.id, now_ns);
    case HVD_DECISION_CREATE:
        return hvd_set_changes_take_creation(agreement, set, reader);
    case HVD_DECISION_REMOVE:
        return hvd_set_changes_take_removal(agreement, set);
    case HVD_DECISION_ABORT:
        return hvd_set_aborts_take(agreement, hvd_sets_find(agreement->sets, set),
                                   record.id == 1, reader);
    case HVD_DECISION_CALL:
        return hvd_call_order_answer(agreement, set, record.id);
    case HVD_DECISION_STACK:
        return hvd_late_stacks_take_question(agreement, record.id);
    case HVD_DECISION_SETTINGS:
        return take_settings(agreement, reader);
    default:
        return HVD_ERR_NET;
    }
}

/* Passes a message of decisions on to the children. hvd_agreement_next carries it out on
 * this rank. */
static int pass_message(struct hvd_agreement *agreement, const void *payload,
                        size_t bytes, int64_t now_ns)
{
    int status = hvd_relay_open(&agreement->relay, payload, bytes, &agreement->message);

    if (status == 0) {
        status = hvd_relay_pass_down(agreement, &agreement->message);
    }
    agreement->message_ns = now_ns;
    agreement->has_message = status == 0;
    return status == HVD_ERR_ARG ? HVD_ERR_NET : status;
}

static int take_decisions(struct hvd_agreement *agreement)
{
    struct hvd_reader part;
    int status = 0, set = agreement->sets->global->id;

    while (status == 0 && set >= 0) {
        status = hvd_relay_next(&agreement->message, &set, &part);
        while (status == 0 && set >= 0 && part.bytes > 0) {
            status = take_decision(agreement, set, &part, agreement->message_ns);
        }
    }
    if (status == 0) {
        hvd_relay_note_seen(agreement, 0, agreement->relay.position);
    }
    return status == HVD_ERR_ARG ? HVD_ERR_NET : status;
}

int hvd_agreement_from_above(struct hvd_agreement *agreement, const void *payload,
                             size_t bytes, int64_t now_ns)
{
    bool moved;
    int status;

    agreement->counts.received++;
    agreement->counts.bytes_received += bytes;
    /* Send pending reports first: their ids have the meaning from before this message. */
    status = hvd_reports_send(agreement, &moved);
    return status == 0 ? pass_message(agreement, payload, bytes, now_ns) : status;
}

/* --- rank 0 decides --- */

/* Sends the coordinator's next message, if it has one. */
static int send_decisions(struct hvd_agreement *agreement, int64_t now_ns)
{
    struct hvd_coordinator *coordinator = agreement->coordinator;
    struct hvd_writer *message = &agreement->decisions;
    int status;

    if (!hvd_coordinator_has_message(coordinator)) {
        return 0;
    }
    message->bytes = 0; /* reuse its memory */
    status =
        hvd_coordinator_make_message(coordinator, agreement->relay.position + 1, message);
    return status == 0 ? pass_message(agreement, message->data, message->bytes, now_ns)
                       : status;
}

static int progress_root(struct hvd_agreement *agreement, bool is_waited, int64_t now_ns,
                         bool *moved)
{
    uint64_t position = agreement->relay.position;
    int status;

    if (!hvd_coordinator_has_work(agreement->coordinator)) {
        return 0;
    }
    status = hvd_coordinator_admit(agreement->coordinator, now_ns);
    if (status == 0) {
        hvd_coordinator_decide(agreement->coordinator, is_waited, now_ns);
        status = send_decisions(agreement, now_ns);
    }
    *moved |= agreement->relay.position > position;
    return status;
}

/* --- events --- */

/* Carries out the message that has been passed down. On rank 0, further decisions may
 * follow, which are passed down in turn. */
static int carry_out_message(struct hvd_agreement *agreement)
{
    int status;

    agreement->has_message = false;
    status = take_decisions(agreement);
    if (status == 0 && agreement->is_root) {
        status = hvd_coordinator_continue(agreement->coordinator, agreement->message_ns);
    }
    if (status == 0 && agreement->is_root) {
        status = send_decisions(agreement, agreement->message_ns);
    }
    return status == 0 && agreement->events.failed ? HVD_ERR_NOMEM : status;
}

static void end_event(struct hvd_agreement *agreement)
{
    struct hvd_entry *entry = agreement->events.ending;

    agreement->events.ending = NULL;
    hvd_tensor_table_end(agreement->tensors, entry, 0, "");
    if (agreement->joins.ended != NULL) {
        hvd_joins_end_own(agreement);
    }
}

const struct hvd_agreement_event *hvd_agreement_next(struct hvd_agreement *agreement,
                                                     int *status)
{
    const struct hvd_agreement_event *event;

    if (agreement->events.ending != NULL) {
        end_event(agreement);
    }
    if (agreement->events.failed && *status == 0) {
        *status = HVD_ERR_NOMEM;
    }
    event = hvd_event_queue_take(&agreement->events);
    while (event == NULL && agreement->has_message && *status == 0) {
        *status = carry_out_message(agreement);
        event = hvd_event_queue_take(&agreement->events);
    }
    return event;
}

/* --- timed work --- */

int hvd_agreement_progress(struct hvd_agreement *agreement, bool is_waited,
                           int64_t now_ns, bool *moved)
{
    int status =
        agreement->set_changes.deferred > 0 ? hvd_set_changes_report(agreement) : 0;

    if (status == 0 && agreement->replays.waiting > 0) {
        status = hvd_replays_look(agreement, agreement->set_changes.deferred > 0, now_ns);
    }
    if (status == 0 && agreement->tensors->calls > 0 &&
        now_ns >= agreement->call_order.look_ns) {
        status = hvd_call_order_look(agreement, now_ns);
    }
    if (status == 0 && now_ns >= agreement->stall_inspector.look_ns) {
        status = hvd_stall_inspector_look(agreement, now_ns);
    }
    if (agreement->late_stacks.count > 0) {
        hvd_late_stacks_look(agreement, now_ns);
    }
    if (status == 0) {
        status = agreement->is_root ? progress_root(agreement, is_waited, now_ns, moved)
                                    : hvd_reports_send(agreement, moved);
    }
    *moved |= agreement->events.end > agreement->events.first;
    return status;
}

/* Returns the earlier time; -1 means never. */
static int64_t earlier_time(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

int64_t hvd_agreement_deadline(const struct hvd_agreement *agreement, bool is_waited,
                               int64_t now_ns)
{
    const struct hvd_stall_inspector *inspector = &agreement->stall_inspector;
    bool may_stall = inspector->is_asking || (agreement->settings.stall_warning_ns > 0 &&
                                              agreement->tensors->oldest != NULL);
    int64_t deadline = may_stall ? inspector->look_ns : -1;

    if (agreement->tensors->calls > 0) {
        deadline = earlier_time(agreement->call_order.look_ns, deadline);
    }
    if (agreement->replays.waiting > 0) {
        deadline =
            earlier_time(hvd_replays_deadline(agreement, is_waited, now_ns), deadline);
    }
    deadline =
        earlier_time(hvd_late_stacks_deadline(&agreement->late_stacks, now_ns), deadline);
    if (agreement->is_root) {
        deadline =
            earlier_time(hvd_coordinator_deadline(agreement->coordinator), deadline);
    }
    return deadline;
}

/* --- rank 0's settings --- */

bool hvd_agreement_settle(struct hvd_agreement *agreement, int *status)
{
    return hvd_replay_decisions_settle(hvd_coordinator_replays(agreement->coordinator),
                                       status);
}

int hvd_agreement_tune(struct hvd_agreement *agreement, int64_t threshold,
                       int64_t cycle_ns)
{
    return hvd_coordinator_tune(agreement->coordinator, threshold, cycle_ns);
}

/* --- queries --- */

const struct hvd_fusion *hvd_agreement_fusion(const struct hvd_agreement *agreement)
{
    return &agreement->settings.fusion;
}

int hvd_agreement_tell_stack(struct hvd_agreement *agreement, const char *text)
{
    return hvd_late_stacks_tell(agreement, text);
}

int hvd_agreement_suspect(const struct hvd_agreement *agreement, int64_t now_ns,
                          char *text, size_t bytes)
{
    return hvd_stall_inspector_suspect(agreement, now_ns, text, bytes);
}

void hvd_agreement_count(const struct hvd_agreement *agreement,
                         struct hvd_agreement_counts *counts)
{
    *counts = agreement->counts;
    counts->breaks =
        agreement->is_root
            ? hvd_replay_decisions_breaks(hvd_coordinator_replays(agreement->coordinator))
            : 0;
}
