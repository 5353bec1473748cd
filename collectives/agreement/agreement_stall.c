/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that wait too long: who lacks what.
 *
 *   any rank   STALL up, when a tensor of its own has been under way for the warning time
 *   rank 0     ASK down (after the end of a plan, so that what is in limbo is reported)
 *   all        HELD up, joined on the way: every tensor under way, and for how long
 *   rank 0     a tensor that somebody has held too long lacks the ranks of its set that do not
 *              hold it: one warning for all; past the shutdown time, the job ends
 *
 * HELD (id: bytes): rank, age, set, name of each tensor. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/agreement/agreement_state.h"
#include "gpu_binding/log.h"

enum {
    NAMES_PER_RANK = 6
};

/* One name that some ranks hold. */
struct held {
    struct hvd_key key;
    int64_t age_ns; /* the most of any rank */
    unsigned char *holders; /* [size] */
    struct held *next; /* in the order of first mention */
};

struct held_list {
    struct hvd_table by_key;
    struct held *first;
    struct held **end;
    size_t size;
};

static const struct hvd_entry *skip_joins(const struct hvd_entry *entry)
{
    while (entry != NULL && entry->proposal.kind == HVD_KIND_JOIN) {
        entry = entry->newer;
    }
    return entry;
}

const struct hvd_entry *hvd_stall_oldest(const struct hvd_agreement *agreement)
{
    return skip_joins(agreement->oldest);
}

int hvd_stall_look(struct hvd_agreement *agreement, int64_t now_ns)
{
    const struct hvd_entry *oldest = hvd_stall_oldest(agreement);
    int64_t limit = agreement->settings.stall_warning_ns;

    if (limit == 0 || oldest == NULL || now_ns - oldest->submitted_ns < limit ||
        now_ns < agreement->stall.next_ns) {
        return 0;
    }
    agreement->stall.next_ns = now_ns + limit;
    if (hvd_agreement_is_root(agreement)) {
        return hvd_stall_put_ask(agreement, now_ns);
    }
    hvd_agreement_put_up(agreement, HVD_REPORT_STALL, 1, 0);
    return 0;
}

int hvd_stall_put_ask(struct hvd_agreement *agreement, int64_t now_ns)
{
    struct hvd_stall *stall = &agreement->stall;

    if (stall->is_asking || now_ns < stall->next_ask_ns) {
        return 0;
    }
    stall->is_asking = true;
    stall->next_ask_ns = now_ns + agreement->settings.stall_warning_ns / 2;
    if (agreement->plan.is_active) {
        hvd_forecast_was_wrong(&agreement->forecast);
        hvd_plan_put_break(agreement);
    }
    hvd_put_record(&agreement->down, HVD_DECISION_ASK, 1, 0);
    return agreement->down.failed ? HVD_ERR_NOMEM : 0;
}

int hvd_stall_answer(struct hvd_agreement *agreement, int64_t now_ns)
{
    struct hvd_stall *stall = &agreement->stall;
    struct hvd_writer own = {0};
    int status;

    stall->branches = 0;
    stall->held.bytes = 0;
    for (const struct hvd_entry *entry = hvd_stall_oldest(agreement); entry != NULL;
         entry = skip_joins(entry->newer)) {
        hvd_put_int(&own, agreement->rank);
        hvd_put_int(&own, now_ns - entry->submitted_ns);
        hvd_put_int(&own, entry->proposal.set);
        hvd_put_text(&own, entry->proposal.name);
    }
    status = own.failed ? HVD_ERR_NOMEM
                        : hvd_stall_held(agreement, own.data, own.bytes, now_ns);
    hvd_writer_finish(&own);
    return status;
}

/* --- rank 0's account --- */

static bool has_key(const void *item, const void *key)
{
    const struct held *held = item;

    return hvd_key_equal(&held->key, key);
}

static struct held *find_held(struct held_list *list, const struct hvd_key *key)
{
    struct held *held = hvd_table_find(&list->by_key, key->hash, has_key, key);

    if (held != NULL) {
        return held;
    }
    held = calloc(1, sizeof(*held) + list->size);
    if (held == NULL || hvd_table_add(&list->by_key, key->hash, held) != 0) {
        free(held);
        return NULL;
    }
    held->key = *key;
    held->holders = (unsigned char *)(held + 1);
    *list->end = held;
    list->end = &held->next;
    return held;
}

static int read_list(struct held_list *list, struct hvd_reader reader)
{
    while (reader.bytes > 0) {
        int64_t rank = hvd_take_int(&reader);
        int64_t age_ns = hvd_take_int(&reader);
        int32_t set = (int32_t)hvd_take_int(&reader);
        const char *name = hvd_take_text(&reader);
        struct hvd_key key;
        struct held *held;

        if (reader.failed || rank < 0 || rank >= (int64_t)list->size) {
            return HVD_ERR_NET;
        }
        key = hvd_key_make(set, name);
        held = find_held(list, &key);
        if (held == NULL) {
            return HVD_ERR_NOMEM;
        }
        held->holders[rank] = 1;
        held->age_ns = age_ns > held->age_ns ? age_ns : held->age_ns;
    }
    return 0;
}

static bool lacks(const struct hvd_agreement *agreement, const struct held *held,
                  int rank)
{
    const struct hvd_members *members = &agreement->members;
    const struct hvd_member_set *set = hvd_members_find(members, held->key.set);
    bool has_joined = held->key.set == HVD_SET_GLOBAL && members->has_joined[rank];

    return set != NULL && !has_joined && !held->holders[rank] &&
           hvd_members_index(set, rank) >= 0;
}

/* Whether the rank holds up a tensor that somebody has held for limit_ns. */
static bool holds_up(const struct hvd_agreement *agreement, const struct held_list *list,
                     int rank, int64_t limit_ns)
{
    for (const struct held *held = list->first; held != NULL; held = held->next) {
        if (held->age_ns >= limit_ns && lacks(agreement, held, rank)) {
            return true;
        }
    }
    return false;
}

/* A new line, "2: [a, b]". is_past: it has held others up past the shutdown time. */
static void put_rank(const struct hvd_agreement *agreement, const struct held_list *list,
                     int rank, bool is_past, FILE *text)
{
    int names = 0;

    fprintf(text, "\n%d%s: [", rank, is_past ? "!" : "");
    for (const struct held *held = list->first; held != NULL; held = held->next) {
        if (held->age_ns < agreement->settings.stall_warning_ns ||
            !lacks(agreement, held, rank)) {
            continue;
        }
        if (names == NAMES_PER_RANK) {
            fputs(" ...", text);
            break;
        }
        fprintf(text, "%s%s", names > 0 ? ", " : "", held->key.name);
        names++;
    }
    fputs("]", text);
}

/* The list of missing ranks. Returns whether any is past the shutdown time. */
static bool put_missing(const struct hvd_agreement *agreement,
                        const struct held_list *list, FILE *text)
{
    const struct hvd_agreement_settings *settings = &agreement->settings;
    bool any_past = false;

    for (int rank = 0; rank < (int)list->size; rank++) {
        bool is_past = settings->stall_shutdown_ns > 0 &&
                       holds_up(agreement, list, rank, settings->stall_shutdown_ns);

        if (holds_up(agreement, list, rank, settings->stall_warning_ns)) {
            put_rank(agreement, list, rank, is_past, text);
        }
        any_past |= is_past;
    }
    return any_past;
}

static void warn(struct hvd_agreement *agreement, const struct held_list *list)
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

static int account(struct hvd_agreement *agreement)
{
    struct held_list list = {.size = (size_t)agreement->members.layout->size};
    struct hvd_reader reader = {.data = agreement->stall.held.data,
                                .bytes = agreement->stall.held.bytes};
    int status;

    list.end = &list.first;
    status = read_list(&list, reader);
    if (status == 0) {
        warn(agreement, &list);
    }
    while (list.first != NULL) {
        struct held *next = list.first->next;

        free(list.first);
        list.first = next;
    }
    hvd_table_finish(&list.by_key);
    return status;
}

int hvd_stall_held(struct hvd_agreement *agreement, const void *data, size_t bytes,
                   int64_t now_ns)
{
    struct hvd_stall *stall = &agreement->stall;

    (void)now_ns;
    hvd_put(&stall->held, data, bytes);
    if (stall->held.failed) {
        return HVD_ERR_NOMEM;
    }
    if (++stall->branches < agreement->members.branches) {
        return 0;
    }
    if (hvd_agreement_is_root(agreement)) {
        stall->is_asking = false;
        return account(agreement);
    }
    hvd_agreement_put_up(agreement, HVD_REPORT_HELD, 1, stall->held.bytes);
    hvd_put(&agreement->up, stall->held.data, stall->held.bytes);
    return 0;
}
