/* SPDX-License-Identifier: Apache-2.0 */
/* Core's part of the agreement: passes submissions in, and carries out its events. */
#include "collectives/core/negotiation.h"

#include <inttypes.h>
#include <string.h>

#include "collectives/agreement/agreement.h"
#include "collectives/core/card.h"
#include "collectives/core/job_state.h"
#include "collectives/core/p2p_source.h"
#include "collectives/core/tuning.h"
#include "collectives/run/teams.h"
#include "collectives/trace/straggler_report.h"
#include "collectives/trace/timeline.h"
#include "collectives/transport/control/uplink.h"
#include "gpu_binding/base/clock.h"
#include "gpu_binding/base/env.h"
#include "gpu_binding/base/log.h"

static const char strange_text[] =
    "a message of another rank cannot be understood: do all nodes have the same version "
    "of hvd?";

/* Rank 0 has logged which ranks are stalled. */
static const char stalled_text[] =
    "A tensor has waited for longer than " HVD_ENV_STALL_SHUTDOWN
    ": the log of rank 0 says for which ranks";

/* --- events of the agreement --- */

/* Reports the failure that a message about one tensor is too long. (Lists of tensors are
 * sent in parts, so they cannot be too long.) */
static int refuse_length(struct hvd_job *job, size_t bytes)
{
    return hvd_fail(&job->negotiation.failure, HVD_ERR_ARG,
                    "a message about a tensor has %zu bytes, at most %zu can be sent: "
                    "give tensors shorter names",
                    bytes, HVD_UPLINK_MOST_BYTES);
}

static int send_message(struct hvd_job *job, const struct hvd_agreement_event *event)
{
    struct hvd_uplink *uplink = job->uplink;
    int status;

    if (event->kind == HVD_AGREEMENT_SEND_UP) {
        status =
            hvd_uplink_send_up(uplink, HVD_MESSAGE_REPORTS, event->data, event->bytes);
    } else if (event->down.child == HVD_AGREEMENT_NODE) {
        status = hvd_uplink_send_node(uplink, HVD_MESSAGE_DECISIONS, event->data,
                                      event->bytes);
    } else {
        status = hvd_uplink_send_child(uplink, event->down.child, HVD_MESSAGE_DECISIONS,
                                       event->data, event->bytes);
    }
    return status == HVD_ERR_ARG ? refuse_length(job, event->bytes) : status;
}

static int add_set(struct hvd_job *job, struct hvd_set *set)
{
    job->negotiation.other_sets++;
    return hvd_teams_add(job->teams, set, &job->negotiation.failure);
}

static void remove_set(struct hvd_job *job, struct hvd_set *set)
{
    job->negotiation.other_sets--;
    hvd_teams_remove(job->teams, set);
}

static void mark_ready(struct hvd_job *job, const struct hvd_agreement_event *event)
{
    const struct hvd_descriptor descriptor = {
        .kind = event->heard.kind, .set = event->heard.set, .name = event->data};

    hvd_timeline_ready(job->timeline, &descriptor, event->heard.rank);
}

/* Ends the job. If rank `silent` cannot leave together with the others, the job fails
 * with this text. If there is no such rank (-1), all ranks shut down with Horovod's
 * words. */
static void give_up(struct hvd_job *job, int silent, const char *text)
{
    if (silent < 0) {
        hvd_shutdown_ask(job, stalled_text, strlen(stalled_text));
        return;
    }
    job->negotiation.culprit = silent;
    hvd_fail(&job->negotiation.failure, HVD_ERR_PEER, "%s", text);
}

static int carry_out(struct hvd_job *job, const struct hvd_agreement_event *event)
{
    switch (event->kind) {
    case HVD_AGREEMENT_SEND_DOWN:
        if (event->down.is_first && job->timeline != NULL) {
            hvd_timeline_cycle(job->timeline);
        }
        return send_message(job, event);
    case HVD_AGREEMENT_SEND_UP:
        return send_message(job, event);
    case HVD_AGREEMENT_RUN:
        if (job->timeline != NULL) {
            hvd_timeline_agreed(job->timeline, event->batch);
        }
        hvd_teams_submit(job->teams, event->batch);
        return 0;
    case HVD_AGREEMENT_PAUSE:
    case HVD_AGREEMENT_CONTINUE:
        hvd_teams_pause(event->set, event->kind == HVD_AGREEMENT_PAUSE);
        return 0;
    case HVD_AGREEMENT_CANCEL:
        hvd_teams_cancel(event->batch);
        return 0;
    case HVD_AGREEMENT_ADD_SET:
        return add_set(job, event->set);
    case HVD_AGREEMENT_REMOVE_SET:
        remove_set(job, event->set);
        return 0;
    case HVD_AGREEMENT_ABORT_SET:
        hvd_p2p_source_abort_set(job, event->set);
        return 0;
    case HVD_AGREEMENT_HEARD:
        mark_ready(job, event);
        return 0;
    case HVD_AGREEMENT_SHOW_STACK:
        hvd_stacks_ask(&job->stacks);
        return 0;
    case HVD_AGREEMENT_STACK:
        hvd_stacks_show(job, event->late, event->data);
        return 0;
    case HVD_AGREEMENT_GIVE_UP:
        give_up(job, event->silent, event->data);
        return 0;
    }
    return HVD_ERR_ARG; /* no such event */
}

/* --- progress --- */

/* Ends the job after a function of the agreement has failed. negotiation.failure has the
 * reason of some failures: a message that is too long, a process set whose team cannot be
 * opened, a rank that does not answer, or a set that cannot be removed. Otherwise memory
 * is out, or a message was malformed. */
static void end_job(struct hvd_job *job, int status)
{
    const char *text = job->negotiation.failure.status != 0
                           ? job->negotiation.failure.text
                       : status == HVD_ERR_NOMEM ? "no memory for messages"
                                                 : strange_text;

    hvd_failure_end_job(job, job->negotiation.culprit, status, text);
}

/* Carries out the events that functions of the agreement have queued; status is what the
 * last one returned. A failure ends the job. */
static void conclude(struct hvd_job *job, int status)
{
    struct hvd_agreement *agreement = job->negotiation.agreement;
    const struct hvd_agreement_event *event;
    int failed = 0;

    while (failed == 0 && (event = hvd_agreement_next(agreement, &status)) != NULL) {
        failed = carry_out(job, event);
    }
    hvd_metrics_note_stalls(job);
    status = failed != 0 ? failed : status;
    if (status != 0) {
        end_job(job, status);
    }
}

/* Passes a list of submitted entries to the agreement. */
static int submit_entries(struct hvd_job *job, struct hvd_entry *entry, int64_t now_ns)
{
    struct hvd_negotiation *negotiation = &job->negotiation;
    int status = 0;

    hvd_progress_note_tensors(&job->progress, now_ns,
                              hvd_agreement_fusion(negotiation->agreement)->cycle_ns);
    negotiation->proposing = entry;
    while (status == 0 && negotiation->proposing != NULL) {
        entry = negotiation->proposing;
        negotiation->proposing = entry->next; /* the entry may end at once */
        if (job->timeline != NULL) {
            hvd_timeline_proposed(job->timeline, entry);
        }
        hvd_live_begin(&job->live);
        status = hvd_agreement_submit(negotiation->agreement, entry, now_ns);
    }
    return status;
}

static unsigned progress_agreement(void *self, int64_t now_ns)
{
    struct hvd_job *job = self;
    struct hvd_entry *submitted;
    const char *stack;
    bool moved;
    int status = 0;

    if (!job->negotiation.is_open) {
        return 0; /* nothing is submitted any more */
    }
    submitted = hvd_submissions_take(&job->submissions);
    moved = submitted != NULL;
    if (submitted != NULL) {
        status = submit_entries(job, submitted, now_ns);
    }
    if (status == 0 && hvd_stacks_take(&job->stacks, &stack)) {
        moved = true;
        status = hvd_agreement_tell_stack(job->negotiation.agreement, stack);
    }
    if (status == 0) {
        status = hvd_agreement_progress(job->negotiation.agreement,
                                        hvd_waiters_exist(&job->waiters), now_ns, &moved);
    }
    if (moved || status != 0) {
        conclude(job, status);
    }
    return moved ? HVD_SOURCE_MOVED : 0;
}

static bool settle_submissions(void *self, const struct hvd_timed_wait *wait)
{
    const struct hvd_job *job = self;

    (void)wait;
    return !hvd_submissions_has_some(&job->submissions);
}

int hvd_negotiation_suspect(const struct hvd_job *job, char *text, size_t bytes)
{
    return job->negotiation.is_open ? hvd_agreement_suspect(job->negotiation.agreement,
                                                            hvd_clock_ns(), text, bytes)
                                    : -1;
}

static int64_t agreement_deadline(const void *self, int64_t now_ns)
{
    const struct hvd_job *job = self;

    return job->negotiation.is_open
               ? hvd_agreement_deadline(job->negotiation.agreement,
                                        hvd_waiters_exist(&job->waiters), now_ns)
               : -1;
}

void hvd_negotiation_on_reports(struct hvd_job *job, int branch, const void *payload,
                                size_t bytes)
{
    struct hvd_agreement *agreement = job->negotiation.agreement;

    if (job->negotiation.is_open) {
        hvd_agreement_watch(agreement, hvd_timeline_wants_marks(job->timeline));
        conclude(job, hvd_agreement_from_below(agreement, branch, payload, bytes,
                                               hvd_clock_ns()));
    }
}

void hvd_negotiation_on_decisions(struct hvd_job *job, const void *payload, size_t bytes)
{
    if (job->negotiation.is_open) {
        conclude(job, hvd_agreement_from_above(job->negotiation.agreement, payload, bytes,
                                               hvd_clock_ns()));
    }
}

/* Whether the agreement allows all ranks to drain. Only some ranks may have started the
 * next batches of a replay, so the replay has to end first. */
static bool may_drain_agreement(void *self)
{
    struct hvd_job *job = self;
    int status = 0;
    bool is_settled = hvd_agreement_settle(job->negotiation.agreement, &status);

    if (status != 0) {
        end_job(job, status);
    }
    return is_settled && status == 0;
}

/* Whether the batch has been cancelled: it is a replayed batch of zeros. Joined ranks,
 * the other source of zeros, take no part in replays. */
static bool is_cancelled(const struct hvd_batch *batch)
{
    return batch->number != 0 && batch->entries[0]->is_zeros;
}

/* Returns the bytes of this rank's own tensors in the batch. */
static int64_t input_bytes(const struct hvd_batch *batch)
{
    int64_t bytes = 0;

    for (int64_t i = 0; batch->header.kind != HVD_KIND_BARRIER && i < batch->header.count;
         i++) {
        const struct hvd_entry *entry = batch->entries[i];

        bytes += entry->is_zeros ? 0 : hvd_descriptor_bytes(&entry->descriptor);
    }
    return bytes;
}

static void note_wait(struct hvd_job *job, const struct hvd_batch *batch)
{
    const struct hvd_straggler_batch note = {
        .kind = batch->header.kind,
        .priority = batch->set->priorities > 1 ? (int)batch->header.priority : -1,
        .tensors = batch->header.count,
        .bytes = input_bytes(batch),
        .submitted_ns = batch->submitted_ns,
        .started_ns = batch->started_ns,
        .ended_ns = hvd_clock_ns(),
        .name = batch->header.count > 0 ? batch->entries[0]->descriptor.name : NULL,
        .steps = hvd_live_steps(&job->live),
    };

    hvd_metrics_note(job, batch, &note);
    hvd_straggler_report_note(job->report, &note);
    hvd_metrics_publish(job);
}

void hvd_negotiation_finish(void *context, struct hvd_batch *batch)
{
    struct hvd_job *job = context;
    int status;

    if (job->report != NULL && !is_cancelled(batch)) {
        note_wait(job, batch);
    }
    status = job->tuning != NULL ? hvd_tuning_note(job->tuning, batch) : 0;
    if (status != 0) {
        hvd_batch_destroy(batch); /* the entries end with all others */
        end_job(job, status);
    } else {
        conclude(job, hvd_agreement_finish(job->negotiation.agreement, batch));
    }
}

static void end_list(struct hvd_job *job, struct hvd_entry *entry, int status,
                     const char *text)
{
    while (entry != NULL) {
        struct hvd_entry *next = entry->next;

        hvd_tensor_table_end(hvd_submissions_tensors(&job->submissions), entry, status,
                             text);
        entry = next;
    }
}

/* Stops the agreement. Ends all entries or, unless `all` is set, only those that are in
 * no agreed batch. */
static void drop_entries(struct hvd_job *job, bool all, int status, const char *text)
{
    struct hvd_entry *rest = job->negotiation.proposing;

    job->negotiation.is_open = false;
    /* The submissions that the agreement has not taken are in flight, too. */
    if (job->negotiation.agreement != NULL) {
        job->negotiation.proposing = NULL;
        end_list(job, rest, status, text);
        end_list(job, hvd_submissions_take(&job->submissions), status, text);
        hvd_agreement_drop(job->negotiation.agreement, all, status, text);
    }
}

static void drain_agreement(void *self, int status, const char *text)
{
    drop_entries(self, false, status, text);
}

static void fail_agreement(void *self, int status, const char *text)
{
    drop_entries(self, true, status, text);
}

static void close_agreement(void *self)
{
    struct hvd_job *job = self;
    const struct hvd_agreement *agreement = job->negotiation.agreement;
    struct hvd_agreement_counts counts;

    if (agreement == NULL) {
        return;
    }
    hvd_agreement_count(agreement, &counts);
    hvd_log(HVD_LOG_DEBUG,
            "batches: %" PRIu64 " replayed, %" PRIu64 " agreed upon; replays: %" PRIu64
            ", of which %" PRIu64 " were broken; messages: %" PRIu64 " sent, %" PRIu64
            " received",
            counts.replayed, counts.decided, counts.replays, counts.breaks,
            counts.messages_up + counts.messages_down, counts.received);
    hvd_agreement_destroy(job->negotiation.agreement);
}

static const struct hvd_source agreement_source = {
    .name = "agreement",
    .talks = true,
    .progress = progress_agreement,
    .settle = settle_submissions,
    .deadline = agreement_deadline,
    .may_drain = may_drain_agreement,
    .drain = drain_agreement,
    .fail = fail_agreement,
    .close = close_agreement,
};

int hvd_negotiation_open(struct hvd_job *job, struct hvd_error *err)
{
    const struct hvd_job_settings *set = &job->settings;
    const struct hvd_agreement_settings settings = {
        .tensors = hvd_submissions_tensors(&job->submissions),
        .sets = &job->sets,
        .peers = job->boot->peers,
        .pid_of = hvd_card_pid,
        .fusion =
            {
                .threshold = set->fusion_threshold,
                .groups_alone = set->disable_group_fusion,
                .capacity = set->cache_capacity,
                .cycle_ns = (int64_t)(set->cycle_time_ms * 1e6),
            },
        .may_replay = true,
        .stall_warning_ns =
            set->stall_check_disable ? 0 : (int64_t)(set->stall_warning_s * 1e9),
        .stall_shutdown_ns = (int64_t)(set->stall_shutdown_s * 1e9),
        .asks_for_stacks = set->reads_stacks,
    };
    int status;

    hvd_loop_add(&job->loop, &agreement_source, job, NULL);
    status = hvd_sets_init(&job->sets, &job->boot->layout, job->boot->rank, err);
    if (status == 0) {
        status = hvd_agreement_create(&settings, &job->negotiation.agreement, err);
    }
    job->negotiation.culprit = job->boot->rank;
    job->negotiation.is_open = status == 0;
    return status;
}
