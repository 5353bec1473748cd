/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the ranks that hold others up. */
#include "collectives/agreement/stall_inspector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/agreement_state.h"
#include "collectives/transport/control/tree.h"
#include "gpu_binding/base/log.h"
#include "pmix_boot/boot.h"

enum {
    NAMES_PER_RANK = 6,
    MOST_RANKS = 256 /* ranks named in one warning */
};

/* Limits of the time to wait for the answer of a rank without children, which is half of
 * the warning time. A progress thread answers in microseconds; on an overloaded machine,
 * it takes tens of milliseconds. */
static const int64_t least_patience_ns = 1000000000;
static const int64_t most_patience_ns = 5000000000;

/* Returns entry, or the first one after it that is not a join: joins may wait for long,
 * because some ranks may have much more data than others. NULL: there is none. */
static const struct hvd_entry *skip_joins(const struct hvd_entry *entry)
{
    while (entry != NULL && entry->descriptor.kind == HVD_KIND_JOIN) {
        entry = entry->newer;
    }
    return entry;
}

/* The error for all ranks: rank, host, other possible ranks, operation, tensor,
 * seconds. */
#define SILENT_TEXT                                                                      \
    "rank %d on %s%s does not answer: its process is stopped, swapped out or starved "   \
    "of "                                                                                \
    "cpu. %s %.80s has waited for %d seconds"

/* --- how long to wait --- */

static int whole_seconds(int64_t ns)
{
    return (int)(ns / 1000000000);
}

/* Returns the number of levels of the tree below a rank. */
static int height_of(const struct hvd_layout *layout, int rank)
{
    int height = 0;

    for (int other = 0; other < layout->size; other++) {
        int levels = 0, at = other;

        while (at >= 0 && at != rank) {
            at = hvd_tree_parent(layout, at);
            levels++;
        }
        height = at == rank && levels > height ? levels : height;
    }
    return height;
}

/* Returns how long to wait for a subtree of this height. */
static int64_t patience_of(const struct hvd_agreement *agreement, int height)
{
    int64_t once = agreement->settings.stall_warning_ns / 2;

    once = once < least_patience_ns  ? least_patience_ns
           : once > most_patience_ns ? most_patience_ns
                                     : once;
    return height * once;
}

/* --- the question --- */

/* Rank 0 asks all ranks, unless it has done so recently. */
static int ask_branches(struct hvd_agreement *agreement, int64_t now_ns)
{
    struct hvd_stall_inspector *inspector = &agreement->stall_inspector;
    struct hvd_writer *writer = &hvd_coordinator_writers(agreement->coordinator)->global;
    int status;

    if (inspector->is_asking || now_ns < inspector->next_ask_ns) {
        return 0;
    }
    inspector->next_ask_ns = now_ns + agreement->settings.stall_warning_ns / 2;
    status = hvd_replay_decisions_break(hvd_coordinator_replays(agreement->coordinator),
                                        agreement->sets->global->id, true);
    hvd_put_record(writer, HVD_DECISION_ASK, 1, ++inspector->asked);
    return writer->failed ? HVD_ERR_NOMEM : status;
}

int hvd_stall_inspector_report(struct hvd_agreement *agreement, int64_t now_ns)
{
    if (agreement->is_root) {
        return ask_branches(agreement, now_ns);
    }
    hvd_reports_put(&agreement->reports, HVD_REPORT_STALL, 1, 0);
    return 0;
}

/* --- rank 0's verdict --- */

/* Returns the silent rank that prevents this one from answering, which may be the rank
 * itself; -1: it has answered. */
static int silent_above(const struct hvd_agreement *agreement, int rank)
{
    while (rank >= 0 && !agreement->stall_inspector.is_silent[rank]) {
        rank = hvd_tree_parent(agreement->sets->layout, rank);
    }
    return rank;
}

/* Whether the tensor needs the rank. */
static bool is_needed(const struct hvd_agreement *agreement,
                      const struct hvd_stalled_tensor *tensor, int rank)
{
    const struct hvd_set *set = hvd_sets_find(agreement->sets, tensor->key.set);

    if (tensor->kind == HVD_KIND_SET_ABORT) {
        return false;
    }
    if (tensor->kind == HVD_KIND_SET_CREATE) {
        return hvd_set_creations_lack(&agreement->set_creations, tensor->key.name, rank);
    }
    return set != NULL && hvd_sets_needs_rank(agreement->sets, set, rank);
}

static bool lacks_tensor(const struct hvd_agreement *agreement,
                         const struct hvd_stalled_tensor *tensor, int rank)
{
    return !hvd_stalled_holds(tensor, rank) && is_needed(agreement, tensor, rank) &&
           silent_above(agreement, rank) < 0;
}

/* Whether the rank lacks a tensor that another rank has had in flight for limit_ns. */
static bool holds_up(const struct hvd_agreement *agreement,
                     const struct hvd_stalled *list, int rank, int64_t limit_ns)
{
    for (const struct hvd_stalled_tensor *tensor = list->first; tensor != NULL;
         tensor = tensor->next) {
        if (tensor->age_ns >= limit_ns && lacks_tensor(agreement, tensor, rank)) {
            return true;
        }
    }
    return false;
}

/* Writes a new line, "2: [a, b] (pid 4711 on n1)". is_past: the rank has held others up
 * past the shutdown time. */
static void put_rank(const struct hvd_agreement *agreement,
                     const struct hvd_stalled *list, int rank, bool is_past, FILE *text)
{
    const struct hvd_boot_peer *peer = &agreement->settings.peers[rank];
    int names = 0;

    fprintf(text, "\n%d%s: [", rank, is_past ? "!" : "");
    for (const struct hvd_stalled_tensor *tensor = list->first; tensor != NULL;
         tensor = tensor->next) {
        if (tensor->age_ns < agreement->settings.stall_warning_ns ||
            !lacks_tensor(agreement, tensor, rank)) {
            continue;
        }
        if (names == NAMES_PER_RANK) {
            fputs(" ...", text);
            break;
        }
        fprintf(text, "%s%s", names > 0 ? ", " : "", tensor->key.name);
        names++;
    }
    fprintf(text, "] (pid %d on %s)", agreement->settings.pid_of(peer), peer->host);
}

/* Writes the list of ranks that lack tensors. Returns whether any is past the shutdown
 * time. */
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
        fputs("\n(too many tensors are in flight: only some of them were checked)", text);
    }
    return any_past;
}

/* Asks the first late ranks where they are. */
static int ask_late(struct hvd_agreement *agreement, const struct hvd_stalled *list)
{
    const int64_t limit_ns = agreement->settings.stall_warning_ns;
    int late[HVD_LATE_STACKS_MOST];
    int count = 0;

    for (int rank = 0; rank < (int)list->ranks && count < HVD_LATE_STACKS_MOST; rank++) {
        if (holds_up(agreement, list, rank, limit_ns)) {
            late[count++] = rank;
        }
    }
    return hvd_late_stacks_ask(agreement, late, count);
}

/* --- silent ranks --- */

/* Returns the tensor that has waited longest for the rank or those behind it, if it has
 * waited for the warning time; NULL: there is none. */
static const struct hvd_stalled_tensor *
longest_wait(const struct hvd_agreement *agreement, const struct hvd_stalled *list,
             int silent)
{
    const struct hvd_stalled_tensor *longest = NULL;
    int64_t age_ns = agreement->settings.stall_warning_ns;

    for (const struct hvd_stalled_tensor *tensor = list->first; tensor != NULL;
         tensor = tensor->next) {
        for (int rank = 0; rank < (int)list->ranks && tensor->age_ns >= age_ns; rank++) {
            if (silent_above(agreement, rank) == silent &&
                is_needed(agreement, tensor, rank)) {
                longest = tensor;
                age_ns = tensor->age_ns + 1;
            }
        }
    }
    return longest;
}

/* Writes the ranks that cannot be asked because they are below the silent one. */
static void put_behind(const struct hvd_agreement *agreement, int silent, FILE *text)
{
    int behind = 0;

    for (int rank = 0; rank < agreement->sets->layout->size; rank++) {
        if (rank != silent && silent_above(agreement, rank) == silent &&
            ++behind <= NAMES_PER_RANK) {
            fprintf(text, "%s%d", behind == 1 ? "; reached only through it: " : ", ",
                    rank);
        }
    }
    if (behind > NAMES_PER_RANK) {
        fprintf(text, " and %d more", behind - NAMES_PER_RANK);
    }
}

/* Writes a new line for each silent rank. Returns the first that has held another rank up
 * past the shutdown time, or -1. */
static int put_silent(const struct hvd_agreement *agreement,
                      const struct hvd_stalled *list, FILE *text)
{
    const struct hvd_stall_inspector *inspector = &agreement->stall_inspector;
    int64_t shutdown_ns = agreement->settings.stall_shutdown_ns;
    int first = -1;

    for (int rank = 0; rank < (int)list->ranks; rank++) {
        const struct hvd_stalled_tensor *tensor =
            inspector->is_silent[rank] ? longest_wait(agreement, list, rank) : NULL;
        bool is_past = tensor != NULL && shutdown_ns > 0 && tensor->age_ns >= shutdown_ns;

        if (tensor != NULL) {
            fprintf(text,
                    "\n%d%s: on %s, silent for %d seconds; %s %s waits for %d seconds",
                    rank, is_past ? "!" : "", agreement->settings.peers[rank].host,
                    whole_seconds(inspector->patience_ns),
                    hvd_kind_name((enum hvd_kind)tensor->kind), tensor->key.name,
                    whole_seconds(tensor->age_ns));
            put_behind(agreement, rank, text);
        }
        first = is_past && first < 0 ? rank : first;
    }
    return first;
}

/* --- warnings of rank 0 --- */

static void say_shutdown(const struct hvd_agreement *agreement)
{
    hvd_log(HVD_LOG_ERROR,
            "One or more rank (marked by \"!\") is stalled for longer than %d seconds. "
            "Will shutdown.",
            whole_seconds(agreement->settings.stall_shutdown_ns));
}

/* Warns of ranks that lack tensors. Returns whether the job must end. */
static bool warn_of_missing(struct hvd_agreement *agreement,
                            const struct hvd_stalled *list)
{
    char *missing = NULL;
    size_t bytes = 0;
    FILE *text = open_memstream(&missing, &bytes);
    bool is_past;

    if (text == NULL) {
        return false;
    }
    is_past = put_missing(agreement, list, text);
    fclose(text);
    if (missing != NULL && missing[0] != '\0') {
        agreement->counts.stall_warnings++;
        hvd_log(
            HVD_LOG_WARN,
            "One or more tensors were submitted to be reduced, gathered or broadcasted "
            "by subset of ranks and are waiting for remainder of ranks for more than "
            "%d seconds. This may indicate that different ranks are trying to submit "
            "different tensors or that only subset of ranks is submitting tensors, "
            "which will cause deadlock. \nMissing ranks:%s",
            whole_seconds(agreement->settings.stall_warning_ns), missing);
    }
    free(missing);
    return is_past;
}

/* Warns of silent ranks. Returns the one for which the job must end, or -1. */
static int warn_of_silent(struct hvd_agreement *agreement, const struct hvd_stalled *list)
{
    char *silent = NULL;
    size_t bytes = 0;
    FILE *text = open_memstream(&silent, &bytes);
    int first;

    if (text == NULL) {
        return -1;
    }
    first = put_silent(agreement, list, text);
    fclose(text);
    if (silent != NULL && silent[0] != '\0') {
        agreement->counts.stall_warnings++;
        hvd_log(HVD_LOG_WARN,
                "One or more ranks do not answer, and others wait for them for more than "
                "%d seconds. Their processes may be stopped, swapped out or starved of "
                "cpu. \nSilent ranks:%s",
                whole_seconds(agreement->settings.stall_warning_ns), silent);
    }
    free(silent);
    return first;
}

static void give_up(struct hvd_agreement *agreement, int silent, const char *text)
{
    const struct hvd_agreement_event event = {
        .kind = HVD_AGREEMENT_GIVE_UP,
        .data = text,
        .bytes = strlen(text) + 1,
        .silent = silent,
    };

    say_shutdown(agreement);
    hvd_event_queue_put(&agreement->events, &event, NULL);
}

static int judge_stalled(struct hvd_agreement *agreement, const struct hvd_stalled *list)
{
    bool is_past = warn_of_missing(agreement, list);
    int silent = warn_of_silent(agreement, list);

    if (silent >= 0) {
        const struct hvd_stalled_tensor *tensor = longest_wait(agreement, list, silent);
        char text[400];

        snprintf(text, sizeof(text), SILENT_TEXT, silent,
                 agreement->settings.peers[silent].host, "",
                 hvd_kind_name((enum hvd_kind)tensor->kind), tensor->key.name,
                 whole_seconds(tensor->age_ns));
        give_up(agreement, silent, text);
        return HVD_ERR_PEER;
    }
    if (is_past) {
        give_up(agreement, -1, "");
        return 0;
    }
    return agreement->settings.asks_for_stacks ? ask_late(agreement, list) : 0;
}

/* --- answers --- */

static void send_answer(struct hvd_agreement *agreement)
{
    struct hvd_stall_inspector *inspector = &agreement->stall_inspector;
    struct hvd_writer list = {0}, *up;

    for (int rank = 0; rank < agreement->sets->layout->size; rank++) {
        if (inspector->is_silent[rank]) {
            hvd_reports_put(&agreement->reports, HVD_REPORT_SILENT,
                            (uint32_t)inspector->wave, (uint64_t)rank);
        }
    }
    hvd_stalled_put(&inspector->list, &list);
    up = hvd_reports_put(&agreement->reports, HVD_REPORT_HELD, (uint32_t)inspector->wave,
                         list.bytes);
    hvd_put(up, list.data, list.bytes);
    up->failed |= list.failed;
    hvd_writer_finish(&list);
}

/* Concludes the inquiry: all branches have answered or are silent. */
static int conclude_inquiry(struct hvd_agreement *agreement)
{
    struct hvd_stall_inspector *inspector = &agreement->stall_inspector;
    int status = 0;

    inspector->is_asking = false;
    if (agreement->is_root) {
        status = judge_stalled(agreement, &inspector->list);
    } else {
        send_answer(agreement);
    }
    hvd_stalled_finish(&inspector->list);
    return status;
}

/* Takes note that a branch has answered: this rank itself, or a child. */
static int note_answer(struct hvd_agreement *agreement, int branch)
{
    struct hvd_stall_inspector *inspector = &agreement->stall_inspector;

    if (inspector->has_answered[branch]) {
        return HVD_ERR_NET;
    }
    inspector->has_answered[branch] = true;
    return ++inspector->answers < agreement->sets->branches ? 0
                                                            : conclude_inquiry(agreement);
}

static int begin_wave(struct hvd_agreement *agreement, uint64_t wave, int64_t now_ns)
{
    struct hvd_stall_inspector *inspector = &agreement->stall_inspector;
    const struct hvd_layout *layout = agreement->sets->layout;

    hvd_stall_inspector_finish(inspector);
    inspector->has_answered = calloc((size_t)agreement->sets->branches, sizeof(bool));
    inspector->is_silent = calloc((size_t)layout->size, sizeof(bool));
    if (inspector->has_answered == NULL || inspector->is_silent == NULL) {
        return HVD_ERR_NOMEM;
    }
    hvd_stalled_init(&inspector->list, (size_t)layout->size, wave);
    inspector->is_asking = true;
    inspector->answers = 0;
    inspector->wave = wave;
    inspector->heard_ns = now_ns;
    inspector->patience_ns = patience_of(agreement, height_of(layout, agreement->rank));
    inspector->until_ns = now_ns + inspector->patience_ns;
    if (inspector->until_ns < inspector->look_ns) {
        inspector->look_ns = inspector->until_ns;
    }
    return 0;
}

int hvd_stall_inspector_answer(struct hvd_agreement *agreement, uint64_t wave,
                               int64_t now_ns)
{
    struct hvd_stall_inspector *inspector = &agreement->stall_inspector;
    int status = begin_wave(agreement, wave, now_ns);

    for (const struct hvd_entry *entry = skip_joins(agreement->tensors->oldest);
         entry != NULL && status == 0; entry = skip_joins(entry->newer)) {
        status = hvd_stalled_add(&inspector->list, &entry->tensor->key,
                                 (int)entry->descriptor.kind, agreement->rank,
                                 now_ns - entry->submitted_ns);
    }
    return status != 0 ? status : note_answer(agreement, 0);
}

/* Whether a report is about the present wave; if not, it comes too late. */
static bool is_current(const struct hvd_stall_inspector *inspector,
                       const struct hvd_record *record)
{
    return inspector->is_asking && record->count == (uint32_t)inspector->wave;
}

int hvd_stall_inspector_take_silent(struct hvd_agreement *agreement, int branch,
                                    const struct hvd_record *record)
{
    const struct hvd_sets *sets = agreement->sets;

    if (!hvd_sets_is_in_branch(sets, record->id, branch)) {
        return HVD_ERR_NET;
    }
    if (is_current(&agreement->stall_inspector, record)) {
        agreement->stall_inspector.is_silent[record->id] = true;
    }
    return 0;
}

int hvd_stall_inspector_take_list(struct hvd_agreement *agreement, int branch,
                                  const struct hvd_record *record, const void *data)
{
    struct hvd_stall_inspector *inspector = &agreement->stall_inspector;
    int status;

    if (!is_current(inspector, record)) {
        return 0;
    }
    status = hvd_stalled_merge(&inspector->list, data, (size_t)record->id);
    return status != 0 ? status : note_answer(agreement, branch);
}

/* Gives up on the children that have not answered in time. */
static int give_up_children(struct hvd_agreement *agreement)
{
    struct hvd_stall_inspector *inspector = &agreement->stall_inspector;
    const struct hvd_sets *sets = agreement->sets;

    for (int rank = 0; rank < sets->layout->size; rank++) {
        int branch = sets->branch_of[rank];

        if (branch > 0 && !inspector->has_answered[branch] &&
            hvd_tree_parent(sets->layout, rank) == agreement->rank) {
            inspector->is_silent[rank] = true;
        }
    }
    return conclude_inquiry(agreement);
}

/* --- when no ASK comes --- */

/* Returns how long after its STALL a rank waits for the next ASK. Rank 0 waits for the
 * answers to one ASK before the next, and does not ask twice within half of the warning
 * time. */
static int64_t patience_with_root(const struct hvd_agreement *agreement)
{
    return patience_of(agreement, height_of(agreement->sets->layout, 0) + 1) +
           agreement->settings.stall_warning_ns / 2;
}

/* Whether this rank is the one that warns on behalf of its parent's children on this
 * node. */
static bool is_spokesman(const struct hvd_agreement *agreement)
{
    const struct hvd_layout *layout = agreement->sets->layout;

    return layout->local_rank[agreement->rank] <= 1;
}

/* Whether no ASK has come although this rank has reported that `entry` waits too long. */
static bool is_unheard(const struct hvd_agreement *agreement,
                       const struct hvd_entry *entry, int64_t now_ns)
{
    const struct hvd_stall_inspector *inspector = &agreement->stall_inspector;
    int64_t since_ns = inspector->heard_ns > entry->submitted_ns ? inspector->heard_ns
                                                                 : entry->submitted_ns;

    return !agreement->is_root && inspector->said_ns > inspector->heard_ns &&
           now_ns - since_ns >=
               agreement->settings.stall_warning_ns + patience_with_root(agreement);
}

/* Writes which ranks may be the reason that no ASK comes: rank 0, or the parent. Returns
 * the parent. */
static int describe_root(const struct hvd_agreement *agreement,
                         const struct hvd_entry *entry, int64_t now_ns, char *text,
                         size_t bytes)
{
    const struct hvd_boot_peer *peers = agreement->settings.peers;
    int parent = hvd_tree_parent(agreement->sets->layout, agreement->rank);
    char way[200] = "";

    if (parent != 0) {
        snprintf(way, sizeof(way), ", or rank %d on %s between it and rank %d,", parent,
                 peers[parent].host, agreement->rank);
    }
    snprintf(text, bytes, SILENT_TEXT, 0, peers[0].host, way,
             hvd_kind_name(entry->descriptor.kind), entry->descriptor.name,
             whole_seconds(now_ns - entry->submitted_ns));
    return parent;
}

int hvd_stall_inspector_suspect(const struct hvd_agreement *agreement, int64_t now_ns,
                                char *text, size_t bytes)
{
    const struct hvd_entry *oldest = skip_joins(agreement->tensors->oldest);

    return oldest != NULL && is_unheard(agreement, oldest, now_ns)
               ? describe_root(agreement, oldest, now_ns, text, bytes)
               : -1;
}

/* Warns that rank 0 is silent and, past the shutdown time, gives up. If a rank between
 * rank 0 and this one may be the silent one, rank 0 gets time to find that out first, and
 * to end the job with an error that names the rank. */
static int blame_root(struct hvd_agreement *agreement, const struct hvd_entry *entry,
                      int64_t now_ns)
{
    int64_t shutdown_ns = agreement->settings.stall_shutdown_ns;
    char text[512];
    int parent = describe_root(agreement, entry, now_ns, text, sizeof(text));
    int64_t grace_ns = parent != 0 ? 2 * agreement->settings.stall_warning_ns : 0;

    if (is_spokesman(agreement)) {
        agreement->counts.stall_warnings++;
        hvd_log(HVD_LOG_WARN, "%s", text);
    }
    if (shutdown_ns == 0 || now_ns - entry->submitted_ns < shutdown_ns + grace_ns) {
        return 0;
    }
    give_up(agreement, parent, text);
    return HVD_ERR_PEER;
}

/* --- timed work --- */

/* Reports that this rank has waited too long for `entry`. */
static int complain_of(struct hvd_agreement *agreement, const struct hvd_entry *entry,
                       int64_t now_ns)
{
    struct hvd_stall_inspector *inspector = &agreement->stall_inspector;
    int status =
        is_unheard(agreement, entry, now_ns) ? blame_root(agreement, entry, now_ns) : 0;

    inspector->said_ns = now_ns;
    return status != 0 ? status : hvd_stall_inspector_report(agreement, now_ns);
}

int hvd_stall_inspector_look(struct hvd_agreement *agreement, int64_t now_ns)
{
    struct hvd_stall_inspector *inspector = &agreement->stall_inspector;
    const struct hvd_entry *oldest = skip_joins(agreement->tensors->oldest);
    int64_t limit = agreement->settings.stall_warning_ns;
    int64_t look_ns = limit > 0 ? now_ns + limit : INT64_MAX;
    int status = 0;

    if (inspector->is_asking && now_ns >= inspector->until_ns) {
        status = give_up_children(agreement);
    }
    if (limit > 0 && oldest != NULL && status == 0) {
        int64_t due_ns = oldest->submitted_ns + limit;

        due_ns =
            due_ns < inspector->said_ns + limit ? inspector->said_ns + limit : due_ns;
        if (now_ns >= due_ns) {
            status = complain_of(agreement, oldest, now_ns);
        } else {
            look_ns = due_ns;
        }
    }
    inspector->look_ns = inspector->is_asking && inspector->until_ns < look_ns
                             ? inspector->until_ns
                             : look_ns;
    return status;
}

void hvd_stall_inspector_finish(struct hvd_stall_inspector *inspector)
{
    hvd_stalled_finish(&inspector->list);
    free(inspector->has_answered);
    free(inspector->is_silent);
    inspector->has_answered = NULL;
    inspector->is_silent = NULL;
}
