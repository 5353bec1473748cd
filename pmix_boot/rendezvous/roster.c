/* SPDX-License-Identifier: Apache-2.0 */
#include "pmix_boot/rendezvous/roster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmix_boot/rendezvous/roster_round.h"

/* The ranks of a node that comes back arrive one after the other: wait this long and
 * admit them together. */
static const int64_t arrivals_ms = 1000;
/* How long after a member's end the report of its success may still arrive. */
static const int64_t word_ms = 1000;

/* --- slots --- */

static int find_slot(const struct hvd_roster_slots *slots, int slot)
{
    for (int i = 0; i < slots->count; i++) {
        if (slots->all[i].number == slot) {
            return i;
        }
    }
    return -1;
}

static int add_slot(struct hvd_roster_slots *slots, const struct hvd_roster_slot *slot)
{
    struct hvd_roster_slot *grown =
        realloc(slots->all, (size_t)(slots->count + 1) * sizeof(*grown));

    if (grown == NULL) {
        return HVD_ERR_NOMEM;
    }
    grown[slots->count++] = *slot;
    slots->all = grown;
    return 0;
}

static void remove_slot(struct hvd_roster_slots *slots, int slot)
{
    int at = find_slot(slots, slot);

    if (at >= 0) {
        slots->all[at] = slots->all[--slots->count];
    }
}

static bool is_leaving(const struct hvd_roster *roster, const struct hvd_member *member)
{
    return find_slot(&roster->leaving, member->slot) >= 0;
}

/* Asks to be called again at that time at the latest. */
static void ask_again(struct hvd_roster_step *step, int64_t at_ms)
{
    if (step->again_ms < 0 || at_ms < step->again_ms) {
        step->again_ms = at_ms;
    }
}

/* --- the rounds of a static job --- */

/* Failed rounds that are kept so that ranks still to come learn why they failed. */
static const int most_rounds = 64;

static void remove_round(struct hvd_roster *roster, int at)
{
    hvd_roster_round_destroy(roster->rounds[at]);
    roster->rounds[at] = roster->rounds[--roster->round_count];
}

/* Drops a failed round if there are too many. */
static void limit_rounds(struct hvd_roster *roster)
{
    for (int i = 0; roster->round_count >= most_rounds && i < roster->round_count; i++) {
        if (roster->rounds[i]->here == 0) {
            remove_round(roster, i);
        }
    }
}

/* Adds a round; NULL if memory runs out. */
static struct hvd_roster_round *
add_round(struct hvd_roster *roster, const struct hvd_roster_join *join, int64_t now_ms)
{
    struct hvd_roster_round **grown;
    struct hvd_roster_round *round;

    limit_rounds(roster);
    grown = realloc(roster->rounds, (size_t)(roster->round_count + 1) * sizeof(*grown));
    if (grown == NULL) {
        return NULL;
    }
    roster->rounds = grown;
    round = hvd_roster_round_create(join, now_ms);
    if (round != NULL) {
        grown[roster->round_count++] = round;
    }
    return round;
}

static int find_round(const struct hvd_roster *roster, const struct hvd_roster_join *join)
{
    for (int i = 0; i < roster->round_count; i++) {
        if (hvd_roster_round_is_of(roster->rounds[i], join)) {
            return i;
        }
    }
    return -1;
}

/* Returns the round that a rank joins, creating it if necessary; NULL if memory runs
 * out. */
static struct hvd_roster_round *
round_for(struct hvd_roster *roster, const struct hvd_roster_join *join, int64_t now_ms)
{
    const int at = find_round(roster, join);

    if (at < 0) {
        return add_round(roster, join, now_ms);
    }
    /* A rank that joins again after its answer begins a new round, unless members of the
     * old one still wait for their answers. */
    if (roster->rounds[at]->here == 0 &&
        hvd_roster_round_has_answered(roster->rounds[at], join->index)) {
        remove_round(roster, at);
        return add_round(roster, join, now_ms);
    }
    return roster->rounds[at];
}

static int join_round(struct hvd_roster *roster, struct hvd_member *member,
                      const struct hvd_roster_join *join, int64_t now_ms,
                      struct hvd_roster_failure *failure)
{
    struct hvd_roster_round *round;
    int status;

    if (member->round != NULL || !hvd_roster_join_is_possible(join)) {
        return hvd_fail(&failure->error, HVD_ERR_ARG,
                        "rank %d claims position %d of %d, which is not valid",
                        join->slot, join->index, join->count);
    }
    round = round_for(roster, join, now_ms);
    if (round == NULL) {
        return hvd_fail(&failure->error, HVD_ERR_NOMEM, "no memory for %d ranks",
                        join->count);
    }
    status = hvd_roster_round_join(round, join, failure);
    if (status == 0) {
        member->round = round;
        member->rank = join->index;
    }
    return status;
}

/* Fills step->ids with the members that wait in the round, in the order of their ranks if
 * the round begins. */
static void answer_round(struct hvd_roster *roster, struct hvd_roster_round *round,
                         struct hvd_roster_step *step)
{
    int told = 0;

    for (int i = 0; i < roster->count; i++) {
        struct hvd_member *member = &roster->members[i];

        if (member->round == round) {
            roster->ids[step->act == HVD_ROSTER_FORM ? member->rank : told] = member->id;
            told++;
            member->round = NULL;
            member->state = HVD_MEMBER_IDLE;
        }
    }
    step->ids = roster->ids;
    step->count = told;
    step->failure = round->failure;
    hvd_roster_round_answer(round);
}

static void progress_rounds(struct hvd_roster *roster, int64_t now_ms,
                            struct hvd_roster_step *step)
{
    for (int i = 0; i < roster->round_count && step->act == HVD_ROSTER_WAIT;) {
        struct hvd_roster_round *round = roster->rounds[i];

        for (int end = 0; end < roster->ended.count; end++) {
            hvd_roster_round_end(round, &roster->ended.all[end].end);
        }
        hvd_roster_round_expire(round, now_ms, &roster->hosts);
        if (round->here > 0 && round->failure.error.status != 0) {
            step->act = HVD_ROSTER_REFUSE;
        } else if (round->here > 0 && round->awaited == 0) {
            step->act = HVD_ROSTER_FORM;
        } else if (round->here > 0) {
            ask_again(step, round->deadline_ms);
            if (round->lost >= 0) {
                ask_again(step, round->return_ms);
            }
        }
        if (step->act != HVD_ROSTER_WAIT) {
            answer_round(roster, round, step);
        }
        if (round->here == 0 && round->awaited == 0) {
            remove_round(roster, i);
        } else {
            i++;
        }
    }
}

/* --- members --- */

void hvd_roster_init(struct hvd_roster *roster, const struct hvd_roster_rules *rules)
{
    *roster = (struct hvd_roster){
        .rules = *rules, .expected = rules->np, .waiting_since_ms = -1};
}

void hvd_roster_finish(struct hvd_roster *roster)
{
    while (roster->round_count > 0) {
        remove_round(roster, 0);
    }
    free(roster->rounds);
    free(roster->members);
    free(roster->ids);
    free(roster->hosts.host);
    free(roster->ended.all);
    free(roster->lost.all);
    free(roster->leaving.all);
    *roster = (struct hvd_roster){0};
}

int hvd_roster_add(struct hvd_roster *roster, int id)
{
    if (roster->count == roster->capacity) {
        int capacity = roster->capacity > 0 ? 2 * roster->capacity : 16;
        struct hvd_member *grown =
            realloc(roster->members, (size_t)capacity * sizeof(*grown));
        int *ids = realloc(roster->ids, (size_t)capacity * sizeof(*ids));

        roster->members = grown != NULL ? grown : roster->members;
        roster->ids = ids != NULL ? ids : roster->ids;
        if (grown == NULL || ids == NULL) {
            return HVD_ERR_NOMEM;
        }
        roster->capacity = capacity;
    }
    roster->members[roster->count++] =
        (struct hvd_member){.id = id, .slot = -1, .rank = -1, .arrived_ms = -1};
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

static void join_generation(struct hvd_roster *roster, struct hvd_member *member,
                            int64_t now_ms)
{
    if (member->arrived_ms < 0) {
        member->arrived_ms = now_ms;
        roster->told &= ~(unsigned)HVD_ROSTER_ADDED;
    }
    if ((member->rank >= 0 || roster->generation == 0) && roster->waiting_since_ms < 0) {
        roster->waiting_since_ms = now_ms;
    }
}

int hvd_roster_join(struct hvd_roster *roster, int id, const struct hvd_roster_join *join,
                    int64_t now_ms, struct hvd_roster_failure *failure)
{
    struct hvd_member *member = hvd_roster_find(roster, id);
    const bool is_elastic = join->count == 0;
    int status = 0;

    failure->culprit = -1;
    if (is_elastic != roster->rules.is_elastic) {
        return hvd_fail(&failure->error, HVD_ERR_STATE,
                        "HOROVOD_ELASTIC of rank %d says that the job is %s, but the "
                        "launcher did not start it so: do not set or unset it by hand",
                        join->slot, is_elastic ? "elastic" : "not elastic");
    }
    if (is_elastic) {
        join_generation(roster, member, now_ms);
    } else {
        status = join_round(roster, member, join, now_ms, failure);
    }
    if (status == 0) {
        member->slot = join->slot;
        member->state = HVD_MEMBER_WAITING;
        remove_slot(&roster->lost, join->slot);
    }
    return status;
}

bool hvd_roster_is_spare(const struct hvd_roster *roster, const struct hvd_member *member)
{
    return roster->generation > 0 && roster->size >= roster->rules.max &&
           member->state == HVD_MEMBER_WAITING && member->rank < 0;
}

int hvd_roster_count_spares(const struct hvd_roster *roster)
{
    int spares = 0;

    for (int i = 0; i < roster->count; i++) {
        spares += hvd_roster_is_spare(roster, &roster->members[i]);
    }
    return spares;
}

void hvd_roster_ready(struct hvd_roster *roster, int id)
{
    hvd_roster_find(roster, id)->has_state = true;
    roster->had_state = true;
}

static int remove_member(struct hvd_roster *roster, struct hvd_member *member,
                         const char *host, int64_t now_ms)
{
    int rank = member->state == HVD_MEMBER_RUNNING ? member->rank : -1;

    if (member->round != NULL) {
        hvd_roster_round_leave(member->round, member->rank, host);
    }
    roster->lost_ms = rank >= 0 ? now_ms : roster->lost_ms;
    *member = roster->members[--roster->count];
    if (roster->waiting_since_ms >= 0) {
        /* the situation has changed, so the time limit starts again */
        roster->waiting_since_ms = now_ms;
    }
    return rank;
}

int hvd_roster_remove(struct hvd_roster *roster, int id, const char *host, int64_t now_ms)
{
    roster->gone += roster->generation == 0;
    return remove_member(roster, hvd_roster_find(roster, id), host, now_ms);
}

/* Whether the member's process has joined again over another connection. */
static bool has_returned(const struct hvd_roster *roster, const struct hvd_member *member)
{
    for (int i = 0; i < roster->count; i++) {
        if (&roster->members[i] != member && roster->members[i].slot == member->slot) {
            return true;
        }
    }
    return false;
}

int hvd_roster_lose(struct hvd_roster *roster, int id, const char *host, int64_t now_ms)
{
    struct hvd_member *member = hvd_roster_find(roster, id);
    const struct hvd_roster_slot lost = {.number = member->slot,
                                         .return_ms = now_ms + HVD_ROSTER_RETURN_MS};
    bool may_return =
        roster->rules.is_elastic && roster->generation == 0 && member->slot >= 0;

    if (member->round != NULL &&
        hvd_roster_round_lose(member->round, member->rank, host, now_ms)) {
        member->round = NULL;
    }
    if (may_return &&
        (has_returned(roster, member) || add_slot(&roster->lost, &lost) == 0)) {
        return remove_member(roster, member, host, now_ms);
    }
    return hvd_roster_remove(roster, id, host, now_ms);
}

int hvd_roster_locate(struct hvd_roster *roster, int rank, const char *host)
{
    if (rank < 0 || rank >= HVD_ROSTER_MOST_RANKS) {
        return HVD_ERR_ARG;
    }
    return hvd_missing_hosts_set(&roster->hosts, rank, host);
}

int hvd_roster_end(struct hvd_roster *roster, const struct hvd_missing_end *end)
{
    struct hvd_roster_slot slot = {.number = end->rank, .end = *end};

    if (end->host[0] == '\0') {
        snprintf(slot.end.host, sizeof(slot.end.host), "%s",
                 hvd_missing_hosts_find(&roster->hosts, end->rank));
    }
    /* only the start of the first generation depends on ended processes */
    if (roster->generation > 0 || find_slot(&roster->ended, end->rank) >= 0) {
        return 0;
    }
    return add_slot(&roster->ended, &slot);
}

void hvd_roster_expect(struct hvd_roster *roster, int count)
{
    roster->expected = count;
}

int hvd_roster_leave(struct hvd_roster *roster, int slot)
{
    if (find_slot(&roster->leaving, slot) >= 0) {
        return 0;
    }
    roster->told &= ~(unsigned)HVD_ROSTER_REMOVED;
    return add_slot(&roster->leaving, &(struct hvd_roster_slot){.number = slot});
}

void hvd_roster_stay(struct hvd_roster *roster, int slot)
{
    remove_slot(&roster->leaving, slot);
}

void hvd_roster_done(struct hvd_roster *roster, int64_t now_ms)
{
    if (!roster->is_done) {
        roster->is_done = true;
        roster->done_ms = now_ms;
    }
}

/* --- the next generation --- */

struct tally {
    int waiting;
    int alive; /* waiting, and not reported as ended by the launcher */
    int running;
    int leaving; /* running, and told to leave */
    int back; /* waiting, and in the last generation */
    int with_state; /* waiting, with the state */
    int64_t latest_ms; /* arrival of a waiting newcomer */
};

static struct tally count_members(const struct hvd_roster *roster)
{
    struct tally tally = {.latest_ms = -1};

    for (int i = 0; i < roster->count; i++) {
        const struct hvd_member *member = &roster->members[i];
        bool is_waiting = member->state == HVD_MEMBER_WAITING;
        bool is_running = member->state == HVD_MEMBER_RUNNING;

        tally.running += is_running;
        tally.leaving += is_running && is_leaving(roster, member);
        tally.waiting += is_waiting;
        tally.alive += is_waiting && find_slot(&roster->ended, member->slot) < 0;
        tally.back += is_waiting && member->rank >= 0;
        tally.with_state += is_waiting && member->has_state;
        if (is_waiting && member->rank < 0 && member->arrived_ms > tally.latest_ms) {
            tally.latest_ms = member->arrived_ms;
        }
    }
    return tally;
}

/* Fills step->ids with the members in this state, or only with those of them that were
 * told to leave. Waiting members become idle, because the step is their answer. */
static void select_members(struct hvd_roster *roster, enum hvd_member_state state,
                           bool only_leaving, struct hvd_roster_step *step)
{
    step->ids = roster->ids;
    step->count = 0;
    for (int i = 0; i < roster->count; i++) {
        struct hvd_member *member = &roster->members[i];

        if (member->state != state || (only_leaving && !is_leaving(roster, member))) {
            continue;
        }
        roster->ids[step->count++] = member->id;
        if (state == HVD_MEMBER_WAITING) {
            member->state = HVD_MEMBER_IDLE;
            member->rank = -1;
        }
    }
}

static int compare_numbers(int64_t left, int64_t right)
{
    return (left > right) - (left < right);
}

static int compare_members(const void *left, const void *right)
{
    const struct hvd_member *a = left;
    const struct hvd_member *b = right;
    int order =
        (int)(a->state != HVD_MEMBER_WAITING) - (int)(b->state != HVD_MEMBER_WAITING);

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

static void form_generation(struct hvd_roster *roster, int waiting,
                            struct hvd_roster_step *step)
{
    int size = waiting < roster->rules.max ? waiting : roster->rules.max;

    qsort(roster->members, (size_t)roster->count, sizeof(roster->members[0]),
          compare_members);
    for (int i = 0; i < roster->count; i++) {
        roster->members[i].rank = i < size ? i : -1;
        if (i < size) {
            roster->members[i].state = HVD_MEMBER_RUNNING;
            roster->ids[i] = roster->members[i].id;
        }
    }
    step->act = HVD_ROSTER_FORM;
    step->ids = roster->ids;
    step->count = size;
    roster->generation++;
    roster->size = size;
    roster->waiting_since_ms = -1;
    roster->told = 0;
    roster->is_short_told = false;
}

/* Counts the members that are gone before the first generation, and among them the lost
 * ones that have not come back in time, or whose processes have ended. */
static int count_gone(const struct hvd_roster *roster, int64_t now_ms,
                      struct hvd_roster_step *step)
{
    int gone = roster->gone;

    for (int i = 0; i < roster->lost.count; i++) {
        const struct hvd_roster_slot *lost = &roster->lost.all[i];

        if (now_ms >= lost->return_ms || find_slot(&roster->ended, lost->number) >= 0) {
            gone++;
        } else {
            ask_again(step, lost->return_ms);
        }
    }
    return gone;
}

/* Returns whether enough members ask to begin. If not, step->again_ms tells when to look
 * again even if no other member joins. */
static bool is_enough(const struct hvd_roster *roster, const struct tally *tally,
                      int64_t now_ms, struct hvd_roster_step *step)
{
    const struct hvd_roster_rules *rules = &roster->rules;
    int64_t patience_ms =
        roster->waiting_since_ms +
        (rules->start_ms < rules->timeout_ms ? rules->start_ms : rules->timeout_ms);
    int by_members;
    int expected;

    if (tally->waiting < rules->min) {
        return false;
    }
    if (roster->generation > 0 || now_ms >= patience_ms) {
        return true;
    }
    by_members = rules->np - count_gone(roster, now_ms, step);
    expected = by_members < roster->expected ? by_members : roster->expected;
    ask_again(step, patience_ms);
    return tally->alive >= expected;
}

static void refuse_members(struct hvd_roster *roster, struct hvd_roster_step *step)
{
    step->act = HVD_ROSTER_REFUSE;
    select_members(roster, HVD_MEMBER_WAITING, false, step);
    roster->waiting_since_ms = -1;
}

static void drop_members(struct hvd_roster *roster, struct hvd_roster_step *step)
{
    step->act = HVD_ROSTER_DROP;
    select_members(roster, HVD_MEMBER_RUNNING, false, step);
    hvd_fail(
        &step->failure.error, HVD_ERR_TIMEOUT,
        "did not %s within %d s: it is stopped, hangs, or computes without calling a "
        "collective",
        roster->is_done ? "end after the job was done" : "rejoin",
        roster->rules.timeout_ms / 1000);
}

/* Begins a generation if no member runs and enough wait, or tells why it cannot. */
static void begin_generation(struct hvd_roster *roster, const struct tally *tally,
                             int64_t now_ms, struct hvd_roster_step *step)
{
    const struct hvd_roster_rules *rules = &roster->rules;
    const bool lacks_state = roster->had_state && tally->with_state == 0;

    if (lacks_state && now_ms < roster->lost_ms + word_ms) {
        /* wait: the last member may still report success */
        ask_again(step, roster->lost_ms + word_ms);
    } else if (lacks_state) {
        hvd_fail(&step->failure.error, HVD_ERR_STATE,
                 "No hosts from previous set remaining, unable to broadcast state.");
        refuse_members(roster, step);
    } else if (rules->reset_limit >= 0 && roster->generation > rules->reset_limit) {
        hvd_fail(&step->failure.error, HVD_ERR_STATE,
                 "Horovod was shutdown because number of resets during elastic job "
                 "exceeded limit: %d",
                 rules->reset_limit);
        refuse_members(roster, step);
    } else {
        form_generation(roster, tally->waiting, step);
    }
}

/* Keeps members waiting because too few have joined, or because some of the last
 * generation still run. When the time is up, drops or refuses members. */
static void hold_members(struct hvd_roster *roster, const struct tally *tally,
                         int64_t now_ms, struct hvd_roster_step *step)
{
    const struct hvd_roster_rules *rules = &roster->rules;
    int64_t deadline_ms = roster->waiting_since_ms + rules->timeout_ms;

    if (now_ms < deadline_ms) {
        ask_again(step, deadline_ms);
        if (tally->running == 0 && roster->generation > 0 && !roster->is_short_told) {
            roster->is_short_told = true;
            step->act = HVD_ROSTER_SHORT;
            hvd_fail(&step->failure.error, HVD_ERR_TIMEOUT,
                     "%d of at least %d ranks have joined: waiting up to %d s for more",
                     tally->waiting, rules->min, rules->timeout_ms / 1000);
        }
    } else if (tally->running > 0) {
        drop_members(roster, step);
    } else {
        hvd_fail(&step->failure.error, HVD_ERR_TIMEOUT,
                 "Timed out waiting for %d ranks, %d have joined. Please check "
                 "that you have enough resources to run at least %d Horovod processes.",
                 rules->min, tally->waiting, rules->min);
        refuse_members(roster, step);
    }
}

/* Tells the running members that members come or leave. Called while none of the running
 * members asks to begin. If one of them is gone, the others begin anew by themselves. */
static void announce(struct hvd_roster *roster, const struct tally *tally, int64_t now_ms,
                     struct hvd_roster_step *step)
{
    const bool is_whole = tally->running == roster->size;
    const bool has_room = tally->running - tally->leaving < roster->rules.max;
    unsigned news = tally->leaving > 0 ? HVD_ROSTER_REMOVED : 0;

    if (tally->waiting > 0 && has_room && is_whole) {
        news |= HVD_ROSTER_ADDED;
    }
    news &= ~roster->told;
    if ((news & HVD_ROSTER_ADDED) != 0 && now_ms < tally->latest_ms + arrivals_ms) {
        ask_again(step, tally->latest_ms + arrivals_ms);
        news &= ~(unsigned)HVD_ROSTER_ADDED;
    }
    if (news != 0) {
        roster->told |= news;
        step->act = HVD_ROSTER_TELL;
        step->changes = news;
    }
}

/* Ends a job that is done, once no member waits any more. */
static void wind_up(struct hvd_roster *roster, const struct tally *tally, int64_t now_ms,
                    struct hvd_roster_step *step)
{
    int64_t deadline_ms = roster->done_ms + roster->rules.timeout_ms;

    if (tally->running > 0 && now_ms < deadline_ms) {
        ask_again(step, deadline_ms);
    } else if (tally->running > 0) {
        drop_members(roster, step);
    } else if (roster->generation > 0 && !roster->is_over_told) {
        roster->is_over_told = true;
        step->act = HVD_ROSTER_OVER;
    }
}

/* Dismisses members that ask to join and are not needed. Returns whether there are
 * any. */
static bool dismiss(struct hvd_roster *roster, struct hvd_roster_step *step)
{
    select_members(roster, HVD_MEMBER_WAITING, !roster->is_done, step);
    if (step->count == 0) {
        return false;
    }
    step->act = HVD_ROSTER_DISMISS;
    hvd_fail(&step->failure.error, HVD_ERR_DISMISSED,
             roster->is_done ? "another rank has reported that the training is done: "
                               "this process is not needed any more"
                             : "this process has been removed from elastic job: the host "
                               "discovery script prints fewer slots");
    return true;
}

void hvd_roster_next(struct hvd_roster *roster, int64_t now_ms,
                     struct hvd_roster_step *step)
{
    struct tally tally;

    *step = (struct hvd_roster_step){
        .act = HVD_ROSTER_WAIT, .again_ms = -1, .failure.culprit = -1};
    if (!roster->rules.is_elastic) {
        progress_rounds(roster, now_ms, step);
        return;
    }
    if (dismiss(roster, step)) {
        return;
    }
    tally = count_members(roster);
    if (roster->is_done) {
        wind_up(roster, &tally, now_ms, step);
        return;
    }
    if (tally.running > 0 && tally.back == 0) {
        roster->waiting_since_ms = -1;
        announce(roster, &tally, now_ms, step);
        return;
    }
    if (tally.waiting == 0) {
        return;
    }
    if (roster->waiting_since_ms < 0) {
        roster->waiting_since_ms = now_ms;
    }
    if (tally.running == 0 && is_enough(roster, &tally, now_ms, step)) {
        begin_generation(roster, &tally, now_ms, step);
    } else {
        hold_members(roster, &tally, now_ms, step);
    }
}
