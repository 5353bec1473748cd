/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/rendezvous/roster.h"

#include <stdlib.h>
#include <string.h>

/* Ranks of a node that comes back arrive one after the other: they are let in together. */
static const int64_t arrivals_ms = 1000;

void hvd_roster_init(struct hvd_roster *roster, const struct hvd_roster_rules *rules)
{
    *roster = (struct hvd_roster){
        .rules = *rules, .expected = rules->np, .waiting_since_ms = -1};
}

void hvd_roster_finish(struct hvd_roster *roster)
{
    free(roster->members);
    free(roster->ended);
    *roster = (struct hvd_roster){0};
}

int hvd_roster_add(struct hvd_roster *roster, int id)
{
    if (roster->count == roster->capacity) {
        int capacity = roster->capacity > 0 ? 2 * roster->capacity : 16;
        struct hvd_member *grown =
            realloc(roster->members, (size_t)capacity * sizeof(*grown));

        if (grown == NULL) {
            return HVD_ERR_NOMEM;
        }
        roster->members = grown;
        roster->capacity = capacity;
    }
    roster->members[roster->count++] = (struct hvd_member){.id = id, .rank = -1};
    return 0;
}

struct hvd_member *hvd_roster_find(struct hvd_roster *roster, int id)
{
    for (int i = 0; i < roster->count; i++) {
        if (roster->members[i].id == id) {
            return &roster->members[i];
        }
    }
    return NULL;
}

void hvd_roster_join(struct hvd_roster *roster, int id, int slot, int64_t now_ms)
{
    struct hvd_member *member = hvd_roster_find(roster, id);

    if (!member->has_joined) {
        member->arrived_ms = now_ms;
        roster->was_told = false;
    }
    member->slot = slot;
    member->has_joined = true;
    member->is_waiting = true;
    if ((member->rank >= 0 || roster->generation == 0) && roster->waiting_since_ms < 0) {
        roster->waiting_since_ms = now_ms;
    }
}

void hvd_roster_ready(struct hvd_roster *roster, int id)
{
    hvd_roster_find(roster, id)->has_state = true;
    roster->had_state = true;
}

int hvd_roster_remove(struct hvd_roster *roster, int id, int64_t now_ms)
{
    struct hvd_member *member = hvd_roster_find(roster, id);
    bool was_running = member->rank >= 0 && !member->is_waiting;
    int rank = was_running ? member->rank : -1;

    roster->gone += roster->generation == 0;
    *member = roster->members[--roster->count];
    if (roster->waiting_since_ms >= 0) {
        roster->waiting_since_ms = now_ms; /* a new situation, so a new time limit */
    }
    return rank;
}

int hvd_roster_expect(struct hvd_roster *roster, int slot, int count)
{
    int *grown;

    roster->expected = count;
    if (slot < 0 || roster->generation > 0) {
        return 0; /* later generations do not count */
    }
    grown = realloc(roster->ended, (size_t)(roster->ended_count + 1) * sizeof(*grown));
    if (grown == NULL) {
        return HVD_ERR_NOMEM;
    }
    grown[roster->ended_count++] = slot;
    roster->ended = grown;
    return 0;
}

/* --- the next generation --- */

struct tally {
    int waiting;
    int alive; /* of them, as far as the launcher has said */
    int running; /* in the last generation, and not asking */
    int back; /* of the last generation, and asking */
    int with_state; /* waiting, with the state */
    int64_t latest_ms; /* arrival of a waiting newcomer */
};

static bool has_ended(const struct hvd_roster *roster, int slot)
{
    for (int i = 0; i < roster->ended_count; i++) {
        if (roster->ended[i] == slot) {
            return true;
        }
    }
    return false;
}

static struct tally count_members(const struct hvd_roster *roster)
{
    struct tally tally = {.latest_ms = -1};

    for (int i = 0; i < roster->count; i++) {
        const struct hvd_member *member = &roster->members[i];

        tally.running += member->rank >= 0 && !member->is_waiting;
        tally.waiting += member->is_waiting;
        tally.alive += member->is_waiting && !has_ended(roster, member->slot);
        tally.back += member->is_waiting && member->rank >= 0;
        tally.with_state += member->is_waiting && member->has_state;
        if (member->is_waiting && member->rank < 0 &&
            member->arrived_ms > tally.latest_ms) {
            tally.latest_ms = member->arrived_ms;
        }
    }
    return tally;
}

static int compare_numbers(int64_t left, int64_t right)
{
    return (left > right) - (left < right);
}

static int compare_members(const void *left, const void *right)
{
    const struct hvd_member *a = left;
    const struct hvd_member *b = right;
    int order = (int)!a->is_waiting - (int)!b->is_waiting;

    if (order == 0) {
        order = (int)!a->has_state - (int)!b->has_state;
    }
    if (order == 0) {
        order = (int)(a->rank < 0) - (int)(b->rank < 0);
    }
    if (order == 0) {
        order = compare_numbers(a->rank, b->rank);
    }
    if (order == 0) {
        order = compare_numbers(a->slot, b->slot);
    }
    return order != 0 ? order : compare_numbers(a->arrived_ms, b->arrived_ms);
}

static void form(struct hvd_roster *roster, int waiting)
{
    int size = waiting < roster->rules.max ? waiting : roster->rules.max;

    qsort(roster->members, (size_t)roster->count, sizeof(roster->members[0]),
          compare_members);
    for (int i = 0; i < roster->count; i++) {
        bool is_in = i < size;

        roster->members[i].rank = is_in ? i : -1;
        roster->members[i].is_waiting = roster->members[i].is_waiting && !is_in;
    }
    roster->generation++;
    roster->size = size;
    roster->waiting_since_ms = -1;
    roster->was_told = false;
    roster->is_short_told = false;
}

/* Whether the members that ask are enough; *again_ms: when time alone may change that. */
static bool is_enough(const struct hvd_roster *roster, const struct tally *tally,
                      int64_t now_ms, int64_t *again_ms)
{
    int64_t patience_ms = roster->waiting_since_ms + roster->rules.start_ms;
    int by_members = roster->rules.np - roster->gone;
    int expected = by_members < roster->expected ? by_members : roster->expected;

    if (tally->waiting < roster->rules.min) {
        return false;
    }
    if (roster->generation > 0 || tally->alive >= expected || now_ms >= patience_ms) {
        return true;
    }
    *again_ms = patience_ms;
    return false;
}

static void refuse(struct hvd_roster *roster, struct hvd_roster_step *step)
{
    step->act = HVD_ROSTER_REFUSE;
    for (int i = 0; i < roster->count; i++) {
        if (roster->members[i].is_waiting) {
            roster->members[i].rank = -1;
        }
    }
    roster->waiting_since_ms = -1;
}

/* All who hold others up ask: begins, or says why not. */
static void begin(struct hvd_roster *roster, const struct tally *tally,
                  struct hvd_roster_step *step)
{
    const struct hvd_roster_rules *rules = &roster->rules;

    if (roster->had_state && tally->with_state == 0) {
        hvd_fail(&step->reason, HVD_ERR_STATE,
                 "No hosts from previous set remaining, unable to broadcast state.");
        refuse(roster, step);
    } else if (rules->reset_limit >= 0 && roster->generation > rules->reset_limit) {
        hvd_fail(&step->reason, HVD_ERR_STATE,
                 "Horovod was shutdown because number of resets during elastic job "
                 "exceeded limit: %d",
                 rules->reset_limit);
        refuse(roster, step);
    } else {
        form(roster, tally->waiting);
        step->act = HVD_ROSTER_FORM;
    }
}

/* More members are needed, or some of the last generation do not ask. */
static void hold(struct hvd_roster *roster, const struct tally *tally, int64_t now_ms,
                 struct hvd_roster_step *step)
{
    const struct hvd_roster_rules *rules = &roster->rules;
    int64_t deadline_ms = roster->waiting_since_ms + rules->timeout_ms;
    bool is_short = tally->running == 0 && roster->generation > 0;

    if (now_ms < deadline_ms) {
        step->again_ms = step->again_ms >= 0 && step->again_ms < deadline_ms
                             ? step->again_ms
                             : deadline_ms;
        if (is_short && !roster->is_short_told) {
            roster->is_short_told = true;
            step->act = HVD_ROSTER_SHORT;
            hvd_fail(&step->reason, HVD_ERR_TIMEOUT,
                     "%d of at least %d ranks have joined: waiting up to %d s for more",
                     tally->waiting, rules->min, rules->timeout_ms / 1000);
        }
        return;
    }
    if (tally->running > 0) {
        hvd_fail(
            &step->reason, HVD_ERR_TIMEOUT,
            "%d ranks of the elastic job did not rejoin within %d s: they are alive, but "
            "hang or compute without calling a collective",
            tally->running, rules->timeout_ms / 1000);
    } else {
        hvd_fail(&step->reason, HVD_ERR_TIMEOUT,
                 "Timed out waiting for %d ranks, %d have joined. Please check "
                 "that you have enough resources to run at least %d Horovod processes.",
                 rules->min, tally->waiting, rules->min);
    }
    refuse(roster, step);
}

/* A generation is at work, and others ask to be let in. */
static void announce(struct hvd_roster *roster, const struct tally *tally, int64_t now_ms,
                     struct hvd_roster_step *step)
{
    int64_t ready_ms = tally->latest_ms + arrivals_ms;

    if (roster->was_told || tally->running >= roster->rules.max) {
        return;
    }
    if (now_ms < ready_ms) {
        step->again_ms = ready_ms;
        return;
    }
    roster->was_told = true;
    step->act = HVD_ROSTER_TELL;
}

void hvd_roster_next(struct hvd_roster *roster, int64_t now_ms,
                     struct hvd_roster_step *step)
{
    struct tally tally = count_members(roster);

    *step = (struct hvd_roster_step){.act = HVD_ROSTER_WAIT, .again_ms = -1};
    if (tally.waiting == 0) {
        return;
    }
    if (tally.running > 0 && tally.back == 0) {
        announce(roster, &tally, now_ms, step);
        return;
    }
    if (roster->waiting_since_ms < 0) {
        roster->waiting_since_ms = now_ms;
    }
    if (tally.running == 0 && is_enough(roster, &tally, now_ms, &step->again_ms)) {
        begin(roster, &tally, step);
    } else {
        hold(roster, &tally, now_ms, step);
    }
}
