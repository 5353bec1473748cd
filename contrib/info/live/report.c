/* SPDX-License-Identifier: Apache-2.0 */
#include "contrib/info/live/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_binding/base/json.h"
#include "gpu_binding/base/number.h"

enum {
    MOST_RANGES = 6, /* of ranks in a sentence */
    MOST_LATE = 16, /* late ranks with a line of their own */
};

/* Shorter waits are normal: they make no rank late. */
static const double least_wait_s = 0.1;

/* The ranks of one job; of an elastic job, the ranks of one generation. */
struct group {
    const struct hvd_info_rank *ranks; /* [count], sorted */
    int count;
    int size; /* of the job */
    const struct hvd_info_rank **by_rank; /* [size] NULL: not found */
    bool *is_late; /* [size] other ranks wait for it */
    bool *waits_for; /* [size] scratch: the ranks that one rank waits for */
};

/* --- what a rank does --- */

enum act {
    ACT_STOPPED,
    ACT_CONNECTING,
    ACT_LEAVING,
    ACT_MOVING,
    ACT_WAITING,
    ACT_OVERLAPPING,
    ACT_MESSAGING,
    ACT_SCRIPT,
};

static bool is_stopped(const struct hvd_info_rank *rank)
{
    return rank->process == 'T' || rank->process == 't';
}

static enum act find_act(const struct hvd_info_rank *rank)
{
    if (is_stopped(rank)) {
        return ACT_STOPPED;
    }
    if (rank->phase != HVD_LIVE_RUNNING) {
        return rank->phase == HVD_LIVE_CONNECTING ? ACT_CONNECTING : ACT_LEAVING;
    }
    if (!rank->is_current) {
        return ACT_MOVING;
    }
    if (rank->count > 0) {
        return rank->is_waiting ? ACT_WAITING : ACT_OVERLAPPING;
    }
    return rank->has_messages ? ACT_MESSAGING : ACT_SCRIPT;
}

/* The words in JSON. */
static const char *act_word(enum act act)
{
    static const char *const words[] = {
        [ACT_STOPPED] = "stopped",     [ACT_CONNECTING] = "connecting",
        [ACT_LEAVING] = "leaving",     [ACT_MOVING] = "moving",
        [ACT_WAITING] = "waiting",     [ACT_OVERLAPPING] = "overlapping",
        [ACT_MESSAGING] = "messaging", [ACT_SCRIPT] = "script",
    };

    return words[act];
}

/* --- which ranks are late --- */

static bool has_tensor(const struct hvd_info_rank *rank,
                       const struct hvd_info_tensor *wanted)
{
    for (int i = 0; i < rank->count; i++) {
        if (rank->tensors[i].set == wanted->set &&
            strcmp(rank->tensors[i].operation, wanted->operation) == 0) {
            return true;
        }
    }
    return rank->in_flight > rank->count; /* it may be one that is not listed */
}

/* Returns whether a rank holds up others that wait for the tensor. The members of process
 * sets other than the global one are unknown, so only stopped ranks count for these. */
static bool holds_up(const struct hvd_info_rank *rank,
                     const struct hvd_info_tensor *tensor)
{
    const enum act act = find_act(rank);

    return act == ACT_STOPPED ||
           (tensor->set == 0 && act != ACT_MOVING && !has_tensor(rank, tensor));
}

/* Fills waits_for. Returns how many ranks this rank waits for. */
static int find_late(struct group *group, const struct hvd_info_rank *rank)
{
    const struct hvd_info_tensor *tensor = rank->tensors;
    int found = 0;

    memset(group->waits_for, 0, (size_t)group->size * sizeof(bool));
    if (find_act(rank) != ACT_WAITING || tensor->age_s < least_wait_s) {
        return 0;
    }
    for (int other = 0; other < group->size; other++) {
        const struct hvd_info_rank *one = group->by_rank[other];

        group->waits_for[other] =
            other != rank->rank &&
            (one == NULL ? tensor->set == 0 : holds_up(one, tensor));
        found += group->waits_for[other];
    }
    return found;
}

static void mark_late(struct group *group)
{
    for (int i = 0; i < group->count; i++) {
        find_late(group, &group->ranks[i]);
        for (int rank = 0; rank < group->size; rank++) {
            group->is_late[rank] = group->is_late[rank] || group->waits_for[rank];
        }
    }
}

/* --- text --- */

/* Prints "rank 3", or "ranks 0-2, 5 and 7 more". */
static void print_ranks(const bool *is_meant, int size, FILE *out)
{
    int count = 0, ranges = 0, left;

    for (int rank = 0; rank < size; rank++) {
        count += is_meant[rank];
    }
    fprintf(out, "rank%s", hvd_number_plural(count));
    left = count;
    for (int first = 0, last; first < size && ranges < MOST_RANGES; first = last + 1) {
        last = first;
        if (!is_meant[first]) {
            continue;
        }
        while (last + 1 < size && is_meant[last + 1]) {
            last++;
        }
        fprintf(out, last == first ? "%s%d" : "%s%d-%d", ranges > 0 ? ", " : " ", first,
                last);
        ranges++;
        left -= last - first + 1;
    }
    if (left > 0) {
        fprintf(out, " and %d more", left);
    }
}

static void print_tensor(const struct hvd_info_tensor *tensor, FILE *out)
{
    fprintf(out, "%s", tensor->operation);
    if (tensor->set != 0) {
        fprintf(out, " of process set %d", tensor->set);
    }
}

static void print_act(struct group *group, const struct hvd_info_rank *rank, FILE *out)
{
    switch (find_act(rank)) {
    case ACT_STOPPED:
        fputs("is stopped, by a signal or a debugger", out);
        return;
    case ACT_CONNECTING:
        fputs("connects to the other ranks, in hvd.init()", out);
        return;
    case ACT_LEAVING:
        fputs("leaves the job", out);
        return;
    case ACT_MOVING:
        fprintf(out, "works; %d in flight", rank->in_flight);
        return;
    case ACT_WAITING:
        fprintf(out, "has waited %.1f s in ", rank->tensors->age_s);
        print_tensor(rank->tensors, out);
        if (find_late(group, rank) > 0) {
            fputs(" for ", out);
            print_ranks(group->waits_for, group->size, out);
        }
        return;
    case ACT_OVERLAPPING:
        fputs("runs the script, with ", out);
        print_tensor(rank->tensors, out);
        fprintf(out, " in flight for %.1f s", rank->tensors->age_s);
        return;
    case ACT_MESSAGING:
        fprintf(out, "has waited %.1f s for a send or receive", rank->age_s);
        return;
    case ACT_SCRIPT:
        fprintf(out, "has run the script for %.1f s", rank->age_s);
        return;
    }
}

static void print_row(struct group *group, int rank, FILE *out)
{
    const struct hvd_info_rank *one = group->by_rank[rank];

    if (one == NULL) {
        fprintf(
            out,
            "%5d  %-12s %8s %6s %10s  is not there: it has ended, or may not be read\n",
            rank, "?", "-", "-", "-");
        return;
    }
    fprintf(out, "%5d  %-12s %8d", rank, one->host, (int)one->pid);
    if (one->steps > 0) {
        fprintf(out, " %6" PRIu64, one->steps);
    } else {
        fprintf(out, " %6s", "-");
    }
    fprintf(out, " %10" PRIu64 "  ", one->ended);
    print_act(group, one, out);
    fputc('\n', out);
}

static void print_stack(const struct hvd_info_rank *rank, FILE *out)
{
    for (const char *line = rank->stack; *line != '\0';) {
        const int length = (int)strcspn(line, "\n");

        fprintf(out, "      %.*s\n", length, line);
        line += length;
        line += *line == '\n';
    }
}

static void print_late(const struct group *group, FILE *out)
{
    int printed = 0, left = 0;

    for (int rank = 0; rank < group->size; rank++) {
        const struct hvd_info_rank *one = group->by_rank[rank];

        if (!group->is_late[rank]) {
            continue;
        }
        if (printed == MOST_LATE) {
            left++;
            continue;
        }
        printed++;
        if (one == NULL) {
            fprintf(out, "late: rank %d, which is not there\n", rank);
        } else {
            fprintf(out, "late: rank %d on %s (pid %d), which ", rank, one->host,
                    (int)one->pid);
            print_act((struct group *)group, one, out);
            fputc('\n', out);
            print_stack(one, out);
        }
    }
    if (left > 0) {
        fprintf(out, "late: %d more\n", left);
    }
}

static void print_group(struct group *group, FILE *out)
{
    const struct hvd_info_rank *first = group->ranks;

    if (first->job != 0) {
        fprintf(out, "job %" PRIu32 ".%" PRIu32 ": ", first->job, first->step);
    }
    fprintf(out, "%d of %d rank%s\n", group->count, group->size,
            hvd_number_plural(group->size));
    fprintf(out, "%5s  %-12s %8s %6s %10s  %s\n", "rank", "node", "pid", "step", "done",
            "what it does");
    for (int rank = 0; rank < group->size; rank++) {
        print_row(group, rank, out);
    }
    print_late(group, out);
}

/* --- JSON --- */

static void print_numbers(const bool *is_meant, int size, FILE *out)
{
    const char *comma = "";

    fputc('[', out);
    for (int rank = 0; rank < size; rank++) {
        if (is_meant[rank]) {
            fprintf(out, "%s%d", comma, rank);
            comma = ", ";
        }
    }
    fputc(']', out);
}

static void print_json_rank(struct group *group, const struct hvd_info_rank *rank,
                            FILE *out)
{
    const enum act act = find_act(rank);

    fprintf(out, "{\"rank\": %d, \"host\": ", rank->rank);
    hvd_json_print(rank->host, out);
    fprintf(out,
            ", \"pid\": %d, \"process\": \"%c\", \"does\": \"%s\", \"steps\": %" PRIu64
            ", \"done\": %" PRIu64 ", \"in_flight\": %d",
            (int)rank->pid, rank->process, act_word(act), rank->steps, rank->ended,
            rank->in_flight);
    if (act == ACT_WAITING || act == ACT_OVERLAPPING) {
        fputs(", \"operation\": ", out);
        hvd_json_print(rank->tensors->operation, out);
        fprintf(out, ", \"process_set\": %d, \"since_s\": %.3f", rank->tensors->set,
                rank->tensors->age_s);
    } else if (act == ACT_SCRIPT || act == ACT_MESSAGING) {
        fprintf(out, ", \"since_s\": %.3f", rank->age_s);
    }
    if (rank->stack[0] != '\0') {
        fputs(", \"stack\": ", out);
        hvd_json_print(rank->stack, out);
    }
    find_late(group, rank);
    fputs(", \"waits_for\": ", out);
    print_numbers(group->waits_for, group->size, out);
    fputc('}', out);
}

static void print_json(struct group *group, FILE *out)
{
    const char *comma = "";

    fprintf(out, "{\"job\": %" PRIu32 ", \"step\": %" PRIu32 ", \"size\": %d, \"late\": ",
            group->ranks->job, group->ranks->step, group->size);
    print_numbers(group->is_late, group->size, out);
    for (int rank = 0; rank < group->size; rank++) {
        group->waits_for[rank] = group->by_rank[rank] == NULL;
    }
    fputs(", \"missing\": ", out);
    print_numbers(group->waits_for, group->size, out);
    fputs(", \"ranks\": [", out);
    for (int i = 0; i < group->count; i++) {
        fputs(comma, out);
        print_json_rank(group, &group->ranks[i], out);
        comma = ", ";
    }
    fputs("]}\n", out);
}

/* --- groups --- */

static int compare_ranks(const void *left, const void *right)
{
    const struct hvd_info_rank *a = left, *b = right;

    if (a->job != b->job) {
        return a->job < b->job ? -1 : 1;
    }
    if (a->step != b->step) {
        return a->step < b->step ? -1 : 1;
    }
    if (a->number != b->number) {
        return a->number < b->number ? -1 : 1;
    }
    if (a->size != b->size) {
        return a->size < b->size ? -1 : 1;
    }
    return a->rank - b->rank;
}

static bool is_of_group(const struct hvd_info_rank *a, const struct hvd_info_rank *b)
{
    return a->job == b->job && a->step == b->step && a->number == b->number &&
           a->size == b->size;
}

static int print_ranks_of(const struct hvd_info_rank *ranks, int count, bool is_json,
                          FILE *out, struct hvd_error *err)
{
    const size_t size = (size_t)ranks->size;
    struct group group = {.ranks = ranks, .count = count, .size = ranks->size};

    group.by_rank = calloc(size, sizeof(struct hvd_info_rank *));
    group.is_late = calloc(2 * size, sizeof(bool));
    if (group.by_rank == NULL || group.is_late == NULL) {
        free(group.by_rank);
        free(group.is_late);
        return hvd_fail(err, HVD_ERR_NOMEM, "no memory for %d ranks", group.size);
    }
    group.waits_for = group.is_late + size;
    for (int i = 0; i < count; i++) {
        group.by_rank[ranks[i].rank] = &ranks[i];
    }
    mark_late(&group);
    if (is_json) {
        print_json(&group, out);
    } else {
        print_group(&group, out);
    }
    free(group.by_rank);
    free(group.is_late);
    return 0;
}

int hvd_info_live_print(struct hvd_info_ranks *ranks, bool is_json, FILE *out,
                        struct hvd_error *err)
{
    int status = 0;

    if (ranks->count > 0) {
        qsort(ranks->all, (size_t)ranks->count, sizeof(*ranks->all), compare_ranks);
    }
    for (int first = 0, end; first < ranks->count && status == 0; first = end) {
        const struct hvd_info_rank *group = &ranks->all[first];

        for (end = first + 1; end < ranks->count && is_of_group(group, &ranks->all[end]);
             end++) {
        }
        if (first > 0 && !is_json) {
            fputc('\n', out);
        }
        status = print_ranks_of(group, end - first, is_json, out, err);
    }
    return status;
}
