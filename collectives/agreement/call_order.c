/* SPDX-License-Identifier: Apache-2.0 */
/* Numbered calls: all ranks of a process set make them in one order. */
#include "collectives/agreement/call_order.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/agreement_state.h"
#include "collectives/agreement/set_aborts.h"
#include "pmix_boot/boot.h"

/* A call that has waited this long is reported. Longer than the usual delay of a late
 * rank, and short enough for a user who waits for an error. */
static const int64_t patience_ns = 500000000;

/* Flags of a CALL report, which are in its record's count. */
enum {
    HAS_GAPS = 1,
    IS_ANSWER = 2,
    IS_CERTAIN = 4
};

/* --- the calls of one process set (struct hvd_call_line) --- */

/* Returns the entry's call number; 0 if the entry has none, or its order does not
 * matter. */
static uint64_t ordered_number(const struct hvd_entry *entry)
{
    const uint64_t call = entry->descriptor.call;

    return (call & HVD_CALL_UNORDERED) == 0 ? call : 0;
}

/* Returns the calls of a set; NULL if memory is out. */
static struct hvd_call_line *find_line(struct hvd_call_order *order, int set)
{
    if (set >= order->count) {
        size_t count = (size_t)set + 1;
        struct hvd_call_line *grown =
            realloc(order->lines, count * sizeof(order->lines[0]));

        if (grown == NULL) {
            return NULL;
        }
        memset(grown + order->count, 0,
               (count - (size_t)order->count) * sizeof(grown[0]));
        order->lines = grown;
        order->count = set + 1;
    }
    return &order->lines[set];
}

void hvd_call_order_forget(struct hvd_call_order *order, int set)
{
    if (set < order->count) {
        free(order->lines[set].highest.text);
        order->lines[set] = (struct hvd_call_line){0};
    }
}

void hvd_call_order_finish(struct hvd_call_order *order)
{
    for (int set = 0; set < order->count; set++) {
        free(order->lines[set].highest.text);
    }
    free(order->lines);
    *order = (struct hvd_call_order){0};
}

int hvd_call_order_add(struct hvd_agreement *agreement, const struct hvd_entry *entry)
{
    struct hvd_call_line *line = find_line(&agreement->call_order, entry->descriptor.set);
    const uint64_t number = entry->descriptor.call & ~HVD_CALL_UNORDERED;

    if (line == NULL) {
        return HVD_ERR_NOMEM;
    }
    if (entry != &entry->request->entries[0]) { /* one call may have several tensors */
        return 0;
    }
    line->first = line->first == 0 || number < line->first ? number : line->first;
    if (ordered_number(entry) != 0) {
        line->last = number > line->last ? number : line->last;
        line->count++;
    }
    return 0;
}

/* Converts a call's number to the one that ranks compare, which counts from the rank's
 * first call: each rank may have started at another number. */
static uint64_t count_to(const struct hvd_call_line *line, uint64_t number)
{
    return number - line->first + 1;
}

static bool has_gaps(const struct hvd_call_line *line)
{
    return line->count != count_to(line, line->last);
}

/* --- calls that wait here --- */

/* Whether a replay has started the call on this rank. Other ranks may not have started it
 * yet. */
static bool is_replayed(const struct hvd_entry *entry)
{
    const struct hvd_replay *replay = entry->set->replay;

    return replay != NULL && replay->is_active && entry->cached != NULL &&
           entry->cached->replayed_at == replay->begun_at;
}

/* Finds the oldest waiting call of each set. */
static void find_oldest(struct hvd_agreement *agreement)
{
    struct hvd_call_order *order = &agreement->call_order;

    for (int set = 0; set < order->count; set++) {
        order->lines[set].oldest = NULL;
    }
    for (const struct hvd_entry *entry = agreement->tensors->oldest; entry != NULL;
         entry = entry->newer) {
        const uint64_t number = ordered_number(entry);
        struct hvd_call_line *line =
            number != 0 ? &order->lines[entry->descriptor.set] : NULL;

        if (line != NULL &&
            (line->oldest == NULL || number < line->oldest->descriptor.call) &&
            (!entry->is_agreed || is_replayed(entry))) {
            line->oldest = entry;
        }
    }
}

/* --- conclusions of rank 0 --- */

/* Returns the length of the name without the number at its end, which tells calls in
 * flight apart: "x#3", "barrier.12". */
static int bytes_of_name(const char *text)
{
    size_t bytes = strcspn(text, "#");

    if (text[bytes] == '\0') {
        while (bytes > 0 && isdigit((unsigned char)text[bytes - 1])) {
            bytes--;
        }
        bytes = bytes > 0 && text[bytes - 1] == '.' ? bytes - 1 : strlen(text);
    }
    return bytes < 100 ? (int)bytes : 100;
}

/* Formats " of process set 3". */
static const char *of_set(const struct hvd_set *set, char *text, size_t bytes)
{
    text[0] = '\0';
    if (!set->is_permanent) {
        snprintf(text, bytes, " of process set %d", set->id);
    }
    return text;
}

/* Aborts the set: two ranks have made different calls with the same number. */
static int end_for_text(struct hvd_agreement *agreement, int set,
                        const struct hvd_waiting_call *one,
                        const struct hvd_waiting_call *other)
{
    const struct hvd_boot_peer *peers = agreement->settings.peers;
    int of_one = bytes_of_name(one->text), of_other = bytes_of_name(other->text);
    char text[HVD_ABORT_REASON], which[40];

    if (of_one == of_other && memcmp(one->text, other->text, (size_t)of_one) == 0) {
        /* the names differ only in their numbers: print those too */
        of_one = of_other = 120;
    }
    snprintf(text, sizeof(text),
             "the ranks disagree on call %" PRIu64 "%s: rank %d on %.40s called '%.*s', "
             "rank %d on %.40s called '%.*s'. All ranks must make the same calls in the "
             "same order",
             one->number,
             of_set(hvd_sets_find(agreement->sets, set), which, sizeof(which)), one->rank,
             peers[one->rank].host, of_one, one->text, other->rank,
             peers[other->rank].host, of_other, other->text);
    return hvd_set_aborts_disagree(agreement, hvd_sets_find(agreement->sets, set), text);
}

/* Aborts the set: some ranks have made a call, and another rank has skipped it. */
static int end_for_number(struct hvd_agreement *agreement, int set,
                          const struct hvd_waiting_call *low,
                          const struct hvd_waiting_call *high)
{
    const struct hvd_boot_peer *peers = agreement->settings.peers;
    char text[HVD_ABORT_REASON], which[40];

    snprintf(text, sizeof(text),
             "the ranks disagree on call %" PRIu64 "%s: rank %d on %.40s called '%.*s', "
             "but not rank %d on %.40s, which is in call %" PRIu64 ", '%.*s'. All ranks "
             "must make the same calls in the same order",
             low->number,
             of_set(hvd_sets_find(agreement->sets, set), which, sizeof(which)), low->rank,
             peers[low->rank].host, bytes_of_name(low->text), low->text, high->rank,
             peers[high->rank].host, high->number, bytes_of_name(high->text), high->text);
    return hvd_set_aborts_disagree(agreement, hvd_sets_find(agreement->sets, set), text);
}

/* Asks the members which of them wait in a call before the highest one known. */
static int ask_members(struct hvd_agreement *agreement, int set,
                       const struct hvd_call_line *line)
{
    struct hvd_part part =
        hvd_part_begin(hvd_coordinator_writers(agreement->coordinator), set);

    hvd_put_record(part.writer, HVD_DECISION_CALL, 1, line->highest.number);
    hvd_part_end(&part);
    return part.writer->failed ? HVD_ERR_NOMEM : 0;
}

int hvd_call_order_after_replay(struct hvd_agreement *agreement, int set)
{
    const struct hvd_call_order *order = &agreement->call_order;
    struct hvd_call_line *line = set < order->count ? &order->lines[set] : NULL;

    if (line == NULL || !line->asks_later) {
        return 0;
    }
    line->asks_later = false;
    return hvd_sets_find(agreement->sets, set)->state == HVD_SET_ACTIVE
               ? ask_members(agreement, set, line)
               : 0;
}

/* Handles a rank that waits in a lower call than the highest one known: some other rank
 * has already gone past the lower call. */
static int judge_lower(struct hvd_agreement *agreement, int set,
                       struct hvd_call_line *line, const struct hvd_waiting_call *call,
                       unsigned flags)
{
    if ((flags & IS_CERTAIN) != 0) {
        return end_for_number(agreement, set, call, &line->highest);
    }
    if (line->highest.has_gaps || line->asks_later) {
        return 0;
    }
    if (hvd_replay_of(agreement, set)->is_active) {
        line->asks_later = true;
        return hvd_replay_decisions_break(hvd_coordinator_replays(agreement->coordinator),
                                          set, false);
    }
    return (flags & IS_ANSWER) == 0 ? ask_members(agreement, set, line) : 0;
}

/* --- reports --- */

static int keep_highest(struct hvd_call_line *line, const struct hvd_waiting_call *call)
{
    char *text = strdup(call->text);

    if (text == NULL) {
        return HVD_ERR_NOMEM;
    }
    free(line->highest.text);
    line->highest = *call;
    line->highest.text = text;
    return 0;
}

/* On rank 0: compares a waiting call with the highest one known. */
static int judge_call(struct hvd_agreement *agreement, int set,
                      struct hvd_call_line *line, const struct hvd_waiting_call *call,
                      unsigned flags)
{
    bool is_first = line->highest.number == 0;
    int status;

    if (hvd_sets_find(agreement->sets, set)->state != HVD_SET_ACTIVE) {
        return 0;
    }
    if (call->number < line->highest.number) {
        return judge_lower(agreement, set, line, call, flags);
    }
    if (call->number == line->highest.number) {
        bool is_same = strcmp(call->text, line->highest.text) == 0;
        bool comes_first = call->rank < line->highest.rank;

        return is_same ? 0
                       : end_for_text(agreement, set, comes_first ? call : &line->highest,
                                      comes_first ? &line->highest : call);
    }
    status = keep_highest(line, call);
    return status != 0 || is_first || call->has_gaps ? status
                                                     : ask_members(agreement, set, line);
}

static int pass_up(struct hvd_agreement *agreement, int set, struct hvd_call_line *line,
                   const struct hvd_waiting_call *call, unsigned flags)
{
    struct hvd_writer *up;

    if (call->number == line->highest.number && (flags & IS_ANSWER) == 0 &&
        strcmp(call->text, line->highest.text) == 0) {
        return 0;
    }
    up = hvd_reports_put(&agreement->reports, HVD_REPORT_CALL, flags,
                         (uint64_t)call->rank);
    hvd_put_int(up, set);
    hvd_put_int(up, (int64_t)call->number);
    hvd_put_text(up, call->text);
    return call->number > line->highest.number ? keep_highest(line, call) : 0;
}

/* Handles a report of a waiting call of this rank, or of a rank below it: judges it on
 * rank 0, or passes it up. */
static int hear_call(struct hvd_agreement *agreement, int set,
                     const struct hvd_waiting_call *call, unsigned flags)
{
    struct hvd_call_line *line = find_line(&agreement->call_order, set);

    if (line == NULL) {
        return HVD_ERR_NOMEM;
    }
    return agreement->is_root ? judge_call(agreement, set, line, call, flags)
                              : pass_up(agreement, set, line, call, flags);
}

int hvd_call_order_take(struct hvd_agreement *agreement,
                        struct hvd_branch_message *message,
                        const struct hvd_record *record)
{
    const struct hvd_sets *sets = agreement->sets;
    int64_t set = hvd_take_int(&message->reader);
    int64_t number = hvd_take_int(&message->reader);
    const char *text = hvd_take_text(&message->reader);
    const struct hvd_set *members;

    if (message->reader.failed || number < 1 || set < 0 || set > INT32_MAX ||
        !hvd_sets_is_in_branch(sets, record->id, message->branch)) {
        return HVD_ERR_NET;
    }
    members = hvd_sets_find(sets, (int)set);
    if (members == NULL || hvd_set_index(members, (int)record->id) < 0) {
        /* the set still exists: a member removes it only after its calls */
        return HVD_ERR_NET;
    }
    return hear_call(
        agreement, (int)set,
        &(struct hvd_waiting_call){.number = (uint64_t)number,
                                   .rank = (int)record->id,
                                   .has_gaps = (record->count & HAS_GAPS) != 0,
                                   .text = (char *)text},
        record->count);
}

/* Reports this rank's oldest waiting call of a set. */
static int say_call(struct hvd_agreement *agreement, int set, struct hvd_call_line *line,
                    unsigned flags)
{
    const char *name = line->oldest->request->entries[0].descriptor.name;
    const size_t reserved = strlen(HVD_NUMBERED_NAMES);
    const struct hvd_waiting_call call = {
        .number = count_to(line, line->oldest->descriptor.call),
        .rank = agreement->rank,
        .has_gaps = has_gaps(line),
        .text = (char *)name +
                (strncmp(name, HVD_NUMBERED_NAMES, reserved) == 0 ? reserved : 0),
    };

    line->said = line->oldest->descriptor.call > line->said
                     ? line->oldest->descriptor.call
                     : line->said;
    return hear_call(agreement, set, &call, flags | (call.has_gaps ? HAS_GAPS : 0));
}

int hvd_call_order_look(struct hvd_agreement *agreement, int64_t now_ns)
{
    struct hvd_call_order *order = &agreement->call_order;
    int status = 0;

    order->look_ns = now_ns + patience_ns;
    find_oldest(agreement);
    for (int set = 0; set < order->count && status == 0; set++) {
        struct hvd_call_line *line = &order->lines[set];
        int64_t due_ns;

        if (line->oldest == NULL || line->oldest->descriptor.call <= line->said) {
            continue;
        }
        due_ns = line->oldest->submitted_ns + patience_ns;
        if (now_ns >= due_ns) {
            status = say_call(agreement, set, line, 0);
        } else if (due_ns < order->look_ns) {
            order->look_ns = due_ns;
        }
    }
    return status;
}

int hvd_call_order_answer(struct hvd_agreement *agreement, int set, uint64_t number)
{
    struct hvd_call_order *order = &agreement->call_order;
    struct hvd_call_line *line;

    if (set >= order->count) {
        return 0; /* this rank has made no call of the set */
    }
    find_oldest(agreement);
    line = &order->lines[set];
    if (line->oldest == NULL || count_to(line, line->oldest->descriptor.call) >= number) {
        return 0;
    }
    return say_call(agreement, set, line,
                    IS_ANSWER | (line->oldest->is_agreed ? 0 : IS_CERTAIN));
}
