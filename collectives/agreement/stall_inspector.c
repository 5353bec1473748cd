/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that wait too long. */
#include "collectives/agreement/stall_inspector.h"

#include <stdio.h>
#include <stdlib.h>

#include "collectives/agreement/agreement_state.h"
#include "gpu_binding/base/log.h"

enum {
    NAMES_PER_RANK = 6,
    MOST_RANKS = 256 /* named in one warning */
};

/* The first of entry and those submitted later that is no join: ranks may have much more data than
 * others. NULL: there is none. */
static const struct hvd_entry *skip_joins(const struct hvd_entry *entry)
{
    while (entry != NULL && entry->proposal.kind == HVD_KIND_JOIN) {
        entry = entry->newer;
    }
    return entry;
}

/* Rank 0. */
static int ask(struct hvd_agreement *agreement, int64_t now_ns)
{
    struct hvd_stall_inspector *inspector = &agreement->stall_inspector;
    struct hvd_replay *replay = hvd_replay_of(agreement, HVD_SET_GLOBAL);
    struct hvd_writer *writer = &agreement->decisions.writers.global;

    if (inspector->is_asking || now_ns < inspector->next_ask_ns) {
        return 0;
    }
    inspector->is_asking = true;
    inspector->next_ask_ns = now_ns + agreement->settings.stall_warning_ns / 2;
    if (replay->is_active) {
        hvd_repetition_was_wrong(&replay->repetition);
        hvd_replay_put_break(agreement, replay);
    }
    hvd_put_record(writer, HVD_DECISION_ASK, 1, (uint64_t)++inspector->asked);
    return writer->failed ? HVD_ERR_NOMEM : 0;
}

int hvd_stall_inspector_report(struct hvd_agreement *agreement, int64_t now_ns)
{
    if (agreement->is_root) {
        return ask(agreement, now_ns);
    }
    hvd_reports_put(&agreement->reports, HVD_REPORT_STALL, 1, 0);
    return 0;
}

int hvd_stall_inspector_look(struct hvd_agreement *agreement, int64_t now_ns)
{
    const struct hvd_entry *oldest = skip_joins(agreement->tensors->oldest);
    int64_t limit = agreement->settings.stall_warning_ns;
    int64_t *look_ns = &agreement->stall_inspector.look_ns;

    if (limit == 0) {
        *look_ns = INT64_MAX;
        return 0;
    }
    *look_ns = now_ns + limit;
    if (oldest == NULL) {
        return 0;
    }
    if (now_ns - oldest->submitted_ns < limit) {
        *look_ns = oldest->submitted_ns + limit;
        return 0;
    }
    return hvd_stall_inspector_report(agreement, now_ns);
}

/* --- rank 0's account --- */

static bool lacks(const struct hvd_agreement *agreement,
                  const struct hvd_stalled_tensor *tensor, int rank)
{
    const struct hvd_membership *membership = &agreement->membership;
    const struct hvd_set_members *set = hvd_membership_find(membership, tensor->key.set);
    bool has_joined = tensor->key.set == HVD_SET_GLOBAL && membership->has_joined[rank];

    return set != NULL && !has_joined && !hvd_stalled_holds(tensor, rank) &&
           hvd_set_members_index(set, rank) >= 0;
}

/* Whether the rank holds up a tensor that somebody has held for limit_ns. */
static bool holds_up(const struct hvd_agreement *agreement,
                     const struct hvd_stalled *list, int rank, int64_t limit_ns)
{
    for (const struct hvd_stalled_tensor *tensor = list->first; tensor != NULL;
         tensor = tensor->next) {
        if (tensor->age_ns >= limit_ns && lacks(agreement, tensor, rank)) {
            return true;
        }
    }
    return false;
}

/* A new line, "2: [a, b]". is_past: it has held others up past the shutdown time. */
static void put_rank(const struct hvd_agreement *agreement,
                     const struct hvd_stalled *list, int rank, bool is_past, FILE *text)
{
    int names = 0;

    fprintf(text, "\n%d%s: [", rank, is_past ? "!" : "");
    for (const struct hvd_stalled_tensor *tensor = list->first; tensor != NULL;
         tensor = tensor->next) {
        if (tensor->age_ns < agreement->settings.stall_warning_ns ||
            !lacks(agreement, tensor, rank)) {
            continue;
        }
        if (names == NAMES_PER_RANK) {
            fputs(" ...", text);
            break;
        }
        fprintf(text, "%s%s", names > 0 ? ", " : "", tensor->key.name);
        names++;
    }
    fputs("]", text);
}

/* The list of missing ranks. Returns whether any is past the shutdown time. */
static bool put_missing(const struct hvd_agreement *agreement,
                        const struct hvd_stalled *list, FILE *text)
{
    const struct hvd_agreement_settings *settings = &agreement->settings;
    bool any_past = false;
    int missing = 0;

    for (int rank = 0; rank < (int)list->ranks; rank++) {
        bool is_past = settings->stall_shutdown_ns > 0 &&
                       holds_up(agreement, list, rank, settings->stall_shutdown_ns);

        if (holds_up(agreement, list, rank, settings->stall_warning_ns) &&
            ++missing <= MOST_RANKS) {
            put_rank(agreement, list, rank, is_past, text);
        }
        any_past |= is_past;
    }
    if (missing > MOST_RANKS) {
        fprintf(text, "\n... and %d more ranks", missing - MOST_RANKS);
    }
    if (missing > 0 && hvd_stalled_is_short(list)) {
        fputs("\n(there are too many tensors to look at all of them at a time)", text);
    }
    return any_past;
}

static void warn(struct hvd_agreement *agreement, const struct hvd_stalled *list)
{
    char *missing = NULL;
    size_t bytes = 0;
    FILE *text = open_memstream(&missing, &bytes);
    bool is_past;

    if (text == NULL) {
        return;
    }
    is_past = put_missing(agreement, list, text);
    fclose(text);
    if (missing != NULL && missing[0] != '\0') {
        hvd_log(
            HVD_LOG_WARN,
            "One or more tensors were submitted to be reduced, gathered or broadcasted "
            "by subset of ranks and are waiting for remainder of ranks for more than "
            "%d seconds. This may indicate that different ranks are trying to submit "
            "different tensors or that only subset of ranks is submitting tensors, "
            "which will cause deadlock. \nMissing ranks:%s",
            (int)(agreement->settings.stall_warning_ns / 1000000000), missing);
    }
    if (is_past) {
        hvd_log(
            HVD_LOG_ERROR,
            "One or more rank (marked by \"!\") is stalled for longer than %d seconds. "
            "Will shutdown.",
            (int)(agreement->settings.stall_shutdown_ns / 1000000000));
        agreement->ops->give_up(agreement->context, missing);
    }
    free(missing);
}

/* --- answers --- */

/* A branch, this rank itself or a child, has answered. */
static int note_answer(struct hvd_agreement *agreement)
{
    struct hvd_stall_inspector *inspector = &agreement->stall_inspector;
    struct hvd_writer list = {0}, *up;

    if (++inspector->answers < agreement->membership.branches) {
        return 0;
    }
    if (agreement->is_root) {
        inspector->is_asking = false;
        warn(agreement, &inspector->list);
    } else {
        hvd_stalled_put(&inspector->list, &list);
        up = hvd_reports_put(&agreement->reports, HVD_REPORT_HELD, 1, list.bytes);
        hvd_put(up, list.data, list.bytes);
        up->failed |= list.failed;
        hvd_writer_finish(&list);
    }
    hvd_stalled_finish(&inspector->list);
    return 0;
}

int hvd_stall_inspector_answer(struct hvd_agreement *agreement, uint64_t wave,
                               int64_t now_ns)
{
    struct hvd_stall_inspector *inspector = &agreement->stall_inspector;
    int status = 0;

    inspector->answers = 0;
    hvd_stalled_finish(&inspector->list);
    hvd_stalled_init(&inspector->list, (size_t)agreement->membership.layout->size, wave);
    for (const struct hvd_entry *entry = skip_joins(agreement->tensors->oldest);
         entry != NULL && status == 0; entry = skip_joins(entry->newer)) {
        status = hvd_stalled_add(&inspector->list, &entry->tensor->key, agreement->rank,
                                 now_ns - entry->submitted_ns);
    }
    return status != 0 ? status : note_answer(agreement);
}

int hvd_stall_inspector_take_list(struct hvd_agreement *agreement, const void *data,
                                  size_t bytes)
{
    int status = hvd_stalled_merge(&agreement->stall_inspector.list, data, bytes);

    return status != 0 ? status : note_answer(agreement);
}

void hvd_stall_inspector_finish(struct hvd_stall_inspector *inspector)
{
    hvd_stalled_finish(&inspector->list);
}
