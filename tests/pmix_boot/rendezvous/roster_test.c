/* SPDX-License-Identifier: Apache-2.0 */
/* Elastic jobs: which members begin, and when. Members connect, join, die and come
 * back. */
#include "pmix_boot/rendezvous/roster.h"

#include <string.h>

#include "tests/tap.h"

enum {
    START_MS = 60000,
    TIMEOUT_MS = 600000,
    MEMBERS = 6
};

static struct hvd_roster make(int np, int min, int max, int reset_limit)
{
    const struct hvd_roster_rules rules = {.is_elastic = true,
                                           .np = np,
                                           .min = min,
                                           .max = max,
                                           .start_ms = START_MS,
                                           .timeout_ms = TIMEOUT_MS,
                                           .reset_limit = reset_limit};
    struct hvd_roster roster;

    hvd_roster_init(&roster, &rules);
    return roster;
}

static void join(struct hvd_roster *roster, int id, int64_t now_ms)
{
    const struct hvd_roster_join as = {.slot = id};
    struct hvd_roster_failure failure;

    hvd_roster_join(roster, id, &as, now_ms, &failure);
}

static void come(struct hvd_roster *roster, int id, int64_t now_ms)
{
    hvd_roster_add(roster, id);
    join(roster, id, now_ms);
}

/* Reports, as the launcher, that the process of the slot has ended and that `count` are
 * still expected. */
static void expect(struct hvd_roster *roster, int slot, int count)
{
    hvd_roster_end(roster, &(struct hvd_missing_end){.rank = slot});
    hvd_roster_expect(roster, count);
}

static void ask(struct hvd_roster *roster, int from, int to, int64_t now_ms)
{
    for (int id = from; id <= to; id++) {
        join(roster, id, now_ms);
    }
}

static void be_ready(struct hvd_roster *roster, int from, int to)
{
    for (int id = from; id <= to; id++) {
        hvd_roster_ready(roster, id);
    }
}

static enum hvd_roster_act act_of(struct hvd_roster *roster, int64_t now_ms)
{
    struct hvd_roster_step step;

    hvd_roster_next(roster, now_ms, &step);
    return step.act;
}

static bool refuses(struct hvd_roster *roster, int64_t now_ms, const char *text)
{
    struct hvd_roster_step step;

    hvd_roster_next(roster, now_ms, &step);
    if (step.act != HVD_ROSTER_REFUSE || strstr(step.failure.error.text, text) == NULL) {
        tap_note("act %d, reason: %s", (int)step.act, step.failure.error.text);
        return false;
    }
    return true;
}

/* Compares the members' ranks with "id:rank ...", sorted by id; "-" is no rank. */
static bool ranks_are(struct hvd_roster *roster, const char *expected)
{
    char text[128] = "";

    for (int id = 0; id < MEMBERS; id++) {
        const struct hvd_member *member = hvd_roster_find(roster, id);
        size_t used = strlen(text);

        if (member != NULL && member->rank >= 0) {
            snprintf(text + used, sizeof(text) - used, "%d:%d ", id, member->rank);
        } else if (member != NULL) {
            snprintf(text + used, sizeof(text) - used, "%d:- ", id);
        }
    }
    if (strcmp(text, expected) != 0) {
        tap_note("ranks: %s", text);
        return false;
    }
    return true;
}

/* Makes a roster in which np members train and have the state. */
static struct hvd_roster at_work(int np, int min, int max)
{
    struct hvd_roster roster = make(np, min, max, -1);

    for (int id = 0; id < np; id++) {
        come(&roster, id, 0);
    }
    act_of(&roster, 0);
    be_ready(&roster, 0, np - 1);
    return roster;
}

static void test_beginning(void)
{
    struct hvd_roster roster = make(3, 1, 3, -1);
    struct hvd_roster_step step;

    come(&roster, 2, 0);
    come(&roster, 0, 10);
    hvd_roster_next(&roster, 20, &step);
    tap_ok(step.act == HVD_ROSTER_WAIT && step.again_ms == START_MS,
           "the first generation waits for all, until the start time is over");
    come(&roster, 1, 30);
    tap_ok(act_of(&roster, 30) == HVD_ROSTER_FORM, "it begins once all have joined");
    tap_ok(ranks_are(&roster, "0:0 1:1 2:2 "), "ranks follow the launcher's numbers");
    tap_ok(act_of(&roster, 40) == HVD_ROSTER_WAIT,
           "nothing is left to do once a generation has begun");
    hvd_roster_finish(&roster);

    roster = make(3, 2, 3, -1);
    come(&roster, 0, 0);
    tap_ok(act_of(&roster, START_MS) == HVD_ROSTER_WAIT,
           "fewer than min members do not begin when the start time is over");
    come(&roster, 1, START_MS + 10);
    tap_ok(act_of(&roster, START_MS + 10) == HVD_ROSTER_FORM, "min members do");
    hvd_roster_finish(&roster);

    roster = make(3, 1, 3, -1);
    come(&roster, 0, 0);
    come(&roster, 1, 0);
    hvd_roster_add(&roster, 2);
    hvd_roster_remove(&roster, 2, "n1", 5);
    tap_ok(act_of(&roster, 5) == HVD_ROSTER_FORM,
           "a process that died before it joined is not waited for");
    hvd_roster_finish(&roster);

    roster = make(3, 1, 3, -1);
    come(&roster, 0, 0);
    come(&roster, 1, 0);
    expect(&roster, 2, 2);
    tap_ok(act_of(&roster, 5) == HVD_ROSTER_FORM,
           "a process that the launcher has given up is not waited for");
    hvd_roster_finish(&roster);

    roster = make(3, 1, 3, -1);
    come(&roster, 0, 0);
    come(&roster, 2, 0);
    hvd_roster_remove(&roster, 2, "n1", 5);
    expect(&roster, 2, 2);
    tap_ok(act_of(&roster, 5) == HVD_ROSTER_WAIT,
           "a death that both the service and the launcher saw counts once");
    hvd_roster_finish(&roster);

    roster = make(3, 1, 3, -1);
    come(&roster, 0, 0);
    come(&roster, 2, 0);
    expect(&roster, 2, 2);
    tap_ok(act_of(&roster, 5) == HVD_ROSTER_WAIT,
           "a member that died after it joined, but whose connection is open, does not "
           "count as waiting");
    hvd_roster_remove(&roster, 2, "n1", 10);
    come(&roster, 1, 20);
    tap_ok(act_of(&roster, 20) == HVD_ROSTER_FORM && roster.size == 2,
           "the missing member is waited for");
    hvd_roster_finish(&roster);

    roster = make(3, 1, 3, -1);
    come(&roster, 0, 0);
    expect(&roster, 2, 2);
    come(&roster, 2, 5);
    tap_ok(act_of(&roster, 5) == HVD_ROSTER_WAIT,
           "a death that the launcher reports before the join does not count as waiting, "
           "either");
    hvd_roster_finish(&roster);

    roster = make(3, 1, 3, -1);
    come(&roster, 0, 0);
    come(&roster, 2, 0);
    hvd_roster_expect(&roster, 3);
    come(&roster, 1, 5);
    tap_ok(act_of(&roster, 5) == HVD_ROSTER_FORM && roster.size == 3,
           "a restarted process counts");
    hvd_roster_finish(&roster);
}

/* Two of three members wait; the connection of member 1 was reset. */
static struct hvd_roster with_reset(void)
{
    struct hvd_roster roster = make(3, 1, 3, -1);

    come(&roster, 0, 0);
    come(&roster, 1, 0);
    hvd_roster_lose(&roster, 1, "n1", 10);
    return roster;
}

static void test_resets(void)
{
    enum {
        OTHER_ID = 7, /* of the second connection of member 1 */
    };
    struct hvd_roster roster = with_reset();
    struct hvd_roster_failure failure;
    struct hvd_roster_step step;

    come(&roster, 1, 20);
    tap_ok(act_of(&roster, 20) == HVD_ROSTER_WAIT,
           "a member that joins again after a reset does not take the place of another");
    come(&roster, 2, 30);
    tap_ok(act_of(&roster, 30) == HVD_ROSTER_FORM && roster.size == 3,
           "all begin once the last one has joined");
    hvd_roster_finish(&roster);

    roster = with_reset();
    come(&roster, 2, 30);
    hvd_roster_next(&roster, 30, &step);
    tap_ok(step.act == HVD_ROSTER_WAIT && step.again_ms == 10 + HVD_ROSTER_RETURN_MS,
           "the others wait a while for a member to join again after a reset");
    come(&roster, 1, 40);
    tap_ok(act_of(&roster, 40) == HVD_ROSTER_FORM && roster.size == 3,
           "they begin together with it");
    hvd_roster_finish(&roster);

    roster = with_reset();
    come(&roster, 2, 30);
    tap_ok(act_of(&roster, 10 + HVD_ROSTER_RETURN_MS) == HVD_ROSTER_FORM &&
               roster.size == 2,
           "they begin without it if it does not come back");
    come(&roster, 1, 40000);
    tap_ok(act_of(&roster, 50000) == HVD_ROSTER_TELL,
           "when it comes back later, it joins at the next commit");
    hvd_roster_finish(&roster);

    roster = with_reset();
    come(&roster, 2, 30);
    expect(&roster, 1, 2);
    tap_ok(act_of(&roster, 40) == HVD_ROSTER_FORM && roster.size == 2,
           "they do not wait for a member whose process has ended");
    hvd_roster_finish(&roster);

    roster = make(3, 1, 3, -1);
    come(&roster, 0, 0);
    come(&roster, 1, 0);
    hvd_roster_add(&roster, OTHER_ID);
    hvd_roster_join(&roster, OTHER_ID, &(struct hvd_roster_join){.slot = 1}, 5, &failure);
    hvd_roster_lose(&roster, 1, "n1", 10);
    tap_ok(act_of(&roster, 10 + HVD_ROSTER_RETURN_MS) == HVD_ROSTER_WAIT,
           "a member that joins again before its reset is noticed is not gone");
    come(&roster, 2, 40000);
    tap_ok(act_of(&roster, 40000) == HVD_ROSTER_FORM && roster.size == 3,
           "all begin with it once the last one has joined");
    hvd_roster_finish(&roster);
}

static void test_deaths(void)
{
    struct hvd_roster roster = at_work(4, 1, 4);

    tap_ok(hvd_roster_remove(&roster, 1, "n1", 100) == 1,
           "the rank of a dead member is returned");
    ask(&roster, 2, 3, 110);
    tap_ok(act_of(&roster, 120) == HVD_ROSTER_WAIT,
           "no generation begins while one of the others has not joined");
    ask(&roster, 0, 0, 130);
    tap_ok(act_of(&roster, 130) == HVD_ROSTER_FORM && roster.size == 3,
           "it begins once all have joined");
    tap_ok(ranks_are(&roster, "0:0 2:1 3:2 "), "members that rejoin keep their order");
    hvd_roster_remove(&roster, 0, "n1", 200);
    ask(&roster, 2, 3, 210);
    tap_ok(act_of(&roster, 210) == HVD_ROSTER_FORM && ranks_are(&roster, "2:0 3:1 "),
           "rank 0 may die, too");
    ask(&roster, 2, 2, 300);
    tap_ok(hvd_roster_remove(&roster, 3, "n1", 310) == 1 &&
               act_of(&roster, 310) == HVD_ROSTER_FORM && ranks_are(&roster, "2:0 "),
           "the member that joins first waits until the other is gone");
    hvd_roster_finish(&roster);
}

static void test_newcomers(void)
{
    struct hvd_roster roster = at_work(2, 1, 3);
    struct hvd_roster_step step;

    come(&roster, 4, 1000);
    hvd_roster_next(&roster, 1000, &step);
    tap_ok(step.act == HVD_ROSTER_WAIT && step.again_ms > 1000,
           "newcomers that arrive at the same time are waited for");
    tap_ok(act_of(&roster, step.again_ms) == HVD_ROSTER_TELL,
           "then all running members are told of the newcomers");
    tap_ok(act_of(&roster, step.again_ms + 1) == HVD_ROSTER_WAIT,
           "members are told only once");
    come(&roster, 3, 5000);
    tap_ok(act_of(&roster, 9000) == HVD_ROSTER_TELL,
           "members are told of a further newcomer, too");
    ask(&roster, 0, 1, 9100);
    tap_ok(act_of(&roster, 9100) == HVD_ROSTER_FORM &&
               ranks_are(&roster, "0:0 1:1 3:2 4:- "),
           "newcomers get the last ranks, as many as there is room for");
    tap_ok(act_of(&roster, 99000) == HVD_ROSTER_WAIT,
           "a newcomer without room is not announced");
    hvd_roster_remove(&roster, 1, "n1", 99100);
    ask(&roster, 0, 0, 99200);
    ask(&roster, 3, 3, 99200);
    tap_ok(act_of(&roster, 99200) == HVD_ROSTER_FORM &&
               ranks_are(&roster, "0:0 3:1 4:2 "),
           "a newcomer gets the room of a member that leaves");
    hvd_roster_finish(&roster);
}

static void test_state(void)
{
    struct hvd_roster roster = at_work(1, 1, 3);

    come(&roster, 1, 100);
    ask(&roster, 0, 0, 200);
    act_of(&roster, 200);
    hvd_roster_remove(&roster, 0, "n1", 300);
    ask(&roster, 1, 1, 310);
    tap_ok(refuses(&roster, 5000,
                   "No hosts from previous set remaining, unable to broadcast state."),
           "newcomers without the state do not begin on their own");
    hvd_roster_finish(&roster);

    roster = at_work(2, 1, 3);
    come(&roster, 5, 100);
    ask(&roster, 0, 1, 200);
    act_of(&roster, 200);
    hvd_roster_remove(&roster, 0, "n1", 300);
    /* swaps the two ranks, as if member 1 had joined after the newcomer */
    hvd_roster_find(&roster, 1)->rank = 2;
    hvd_roster_find(&roster, 5)->rank = 1;
    ask(&roster, 1, 1, 310);
    ask(&roster, 5, 5, 310);
    tap_ok(act_of(&roster, 310) == HVD_ROSTER_FORM && ranks_are(&roster, "1:0 5:1 "),
           "rank 0 is a member that has the state");
    hvd_roster_finish(&roster);
}

static void test_static_rank(void)
{
    struct hvd_roster roster = make(2, 1, 2, -1);
    const struct hvd_roster_join as = {.count = 2, .timeout_ms = TIMEOUT_MS};
    struct hvd_roster_failure failure;

    hvd_roster_add(&roster, 0);
    tap_ok(hvd_roster_join(&roster, 0, &as, 0, &failure) == HVD_ERR_STATE &&
               strstr(failure.error.text, "HOROVOD_ELASTIC") != NULL,
           "a rank that joins as in a static job is rejected");
    come(&roster, 1, 0);
    tap_ok(act_of(&roster, START_MS) == HVD_ROSTER_FORM && roster.size == 1,
           "the others begin without it");
    hvd_roster_finish(&roster);
}

static void test_limits(void)
{
    struct hvd_roster roster = at_work(3, 3, 3);
    struct hvd_roster_step step;

    hvd_roster_remove(&roster, 2, "n1", 1000);
    ask(&roster, 0, 1, 1000);
    tap_ok(act_of(&roster, 1000) == HVD_ROSTER_SHORT, "too few members are logged");
    hvd_roster_next(&roster, 1001, &step);
    tap_ok(step.act == HVD_ROSTER_WAIT && step.again_ms == 1000 + TIMEOUT_MS,
           "the members wait for more");
    tap_ok(refuses(&roster, 1000 + TIMEOUT_MS, "enough resources to run at least 3"),
           "the members wait until the time limit");
    hvd_roster_finish(&roster);

    roster = make(1, 1, 1, 1);
    come(&roster, 0, 0);
    tap_ok(act_of(&roster, 0) == HVD_ROSTER_FORM, "the first generation is not a reset");
    ask(&roster, 0, 0, 10);
    tap_ok(act_of(&roster, 10) == HVD_ROSTER_FORM, "one reset is allowed");
    ask(&roster, 0, 0, 20);
    tap_ok(refuses(&roster, 20, "resets during elastic job exceeded limit: 1"),
           "a second is not");
    hvd_roster_finish(&roster);
}

/* Returns whether the step names exactly these members, "id id ...". */
static bool is_about(const struct hvd_roster_step *step, const char *expected)
{
    char text[64] = "";

    for (int i = 0; i < step->count; i++) {
        size_t used = strlen(text);

        snprintf(text + used, sizeof(text) - used, "%d ", step->ids[i]);
    }
    if (strcmp(text, expected) != 0) {
        tap_note("members: %s", text);
        return false;
    }
    return true;
}

/* Returns whether the next step is this action for these members. */
static bool acts_on(struct hvd_roster *roster, int64_t now_ms, enum hvd_roster_act act,
                    const char *members)
{
    struct hvd_roster_step step;

    hvd_roster_next(roster, now_ms, &step);
    return step.act == act && is_about(&step, members);
}

static void test_spares(void)
{
    struct hvd_roster roster = make(4, 1, 3, -1);

    come(&roster, 3, 0);
    come(&roster, 0, 0);
    come(&roster, 1, 0);
    tap_ok(act_of(&roster, 0) == HVD_ROSTER_WAIT && hvd_roster_count_spares(&roster) == 0,
           "a spare is only chosen when all have come");
    come(&roster, 2, 0);
    tap_ok(act_of(&roster, 0) == HVD_ROSTER_FORM &&
               ranks_are(&roster, "0:0 1:1 2:2 3:- ") &&
               hvd_roster_count_spares(&roster) == 1,
           "the last slot becomes the spare");
    be_ready(&roster, 0, 2);
    tap_ok(act_of(&roster, 9000) == HVD_ROSTER_WAIT,
           "the running members are not told of a spare");
    hvd_roster_remove(&roster, 1, "n1", 9100);
    tap_ok(act_of(&roster, 9100) == HVD_ROSTER_WAIT,
           "nor when one of them is gone: they begin anew by themselves");
    ask(&roster, 0, 0, 9200);
    tap_ok(act_of(&roster, 9200) == HVD_ROSTER_WAIT, "the spare waits for all of them");
    ask(&roster, 2, 2, 9300);
    tap_ok(act_of(&roster, 9300) == HVD_ROSTER_FORM &&
               ranks_are(&roster, "0:0 2:1 3:2 ") &&
               hvd_roster_count_spares(&roster) == 0,
           "the spare takes the place of the one that is gone");
    come(&roster, 4, 9400);
    come(&roster, 5, 9400);
    hvd_roster_remove(&roster, 4, "n1", 9500);
    tap_ok(act_of(&roster, 99000) == HVD_ROSTER_WAIT &&
               hvd_roster_count_spares(&roster) == 1,
           "a spare that is gone does not disturb the running members");
    hvd_roster_done(&roster, 99100);
    tap_ok(acts_on(&roster, 99100, HVD_ROSTER_DISMISS, "5 "),
           "a spare is dismissed when the job is done");
    hvd_roster_finish(&roster);

    roster = make(2, 1, 1, -1);
    come(&roster, 0, 0);
    come(&roster, 1, 0);
    act_of(&roster, 0);
    be_ready(&roster, 0, 0);
    hvd_roster_remove(&roster, 0, "n1", 1000);
    act_of(&roster, 1000);
    tap_ok(refuses(&roster, 5000, "No hosts from previous set remaining"),
           "a spare does not begin on its own");
    hvd_roster_finish(&roster);
}

static void test_drops(void)
{
    struct hvd_roster roster = at_work(3, 1, 3);

    ask(&roster, 0, 0, 1000);
    ask(&roster, 2, 2, 5000);
    tap_ok(act_of(&roster, 1000 + TIMEOUT_MS - 1) == HVD_ROSTER_WAIT,
           "a member that has not rejoined gets time to do so");
    tap_ok(acts_on(&roster, 1000 + TIMEOUT_MS, HVD_ROSTER_DROP, "1 "),
           "a member that has not rejoined in time is dropped");
    hvd_roster_remove(&roster, 1, "n1", 1000 + TIMEOUT_MS);
    tap_ok(act_of(&roster, 1000 + TIMEOUT_MS) == HVD_ROSTER_FORM &&
               ranks_are(&roster, "0:0 2:1 "),
           "and the others continue");
    hvd_roster_finish(&roster);

    roster = at_work(2, 1, 3);
    ask(&roster, 0, 0, 1000);
    hvd_roster_remove(&roster, 0, "n1", 1100);
    act_of(&roster, 1100);
    come(&roster, 2, 90 * TIMEOUT_MS);
    ask(&roster, 1, 1, 99 * TIMEOUT_MS);
    tap_ok(act_of(&roster, 99 * TIMEOUT_MS) == HVD_ROSTER_FORM && roster.size == 2,
           "time in which no member waits does not count");
    hvd_roster_finish(&roster);

    roster = make(3, 1, 3, -1);
    roster.rules.timeout_ms = START_MS / 2;
    come(&roster, 0, 0);
    tap_ok(act_of(&roster, START_MS / 2) == HVD_ROSTER_FORM,
           "the first generation waits no longer than later ones");
    hvd_roster_finish(&roster);
}

static void test_success(void)
{
    struct hvd_roster roster = at_work(2, 2, 3);
    struct hvd_roster_step step;

    hvd_roster_done(&roster, 1000);
    come(&roster, 3, 1100);
    hvd_roster_next(&roster, 1100, &step);
    tap_ok(step.act == HVD_ROSTER_DISMISS && is_about(&step, "3 ") &&
               step.failure.error.status == HVD_ERR_DISMISSED &&
               strstr(step.failure.error.text, "the training is done") != NULL,
           "a member that joins after the first success is dismissed");
    ask(&roster, 1, 1, 1200);
    tap_ok(acts_on(&roster, 1200, HVD_ROSTER_DISMISS, "1 "),
           "a member that lost a peer that had succeeded is dismissed");
    hvd_roster_next(&roster, 1300, &step);
    tap_ok(step.act == HVD_ROSTER_WAIT && step.again_ms == 1000 + TIMEOUT_MS,
           "the others get time to end");
    hvd_roster_remove(&roster, 0, "n1", 1400);
    tap_ok(act_of(&roster, 1400) == HVD_ROSTER_OVER &&
               act_of(&roster, 1400) == HVD_ROSTER_WAIT,
           "once all have ended, the launcher is told, only once");
    hvd_roster_finish(&roster);

    roster = at_work(2, 1, 2);
    hvd_roster_done(&roster, 1000);
    hvd_roster_remove(&roster, 0, "n1", 1000);
    tap_ok(acts_on(&roster, 1000 + TIMEOUT_MS, HVD_ROSTER_DROP, "1 "),
           "a member that does not end in time is dropped");
    hvd_roster_finish(&roster);

    roster = make(2, 1, 2, -1);
    hvd_roster_done(&roster, 1000);
    tap_ok(act_of(&roster, 1000) == HVD_ROSTER_WAIT,
           "processes that never were in a generation are not ended");
    hvd_roster_finish(&roster);

    roster = at_work(1, 1, 2);
    come(&roster, 1, 1000);
    hvd_roster_remove(&roster, 0, "n1", 1000);
    hvd_roster_next(&roster, 1000, &step);
    tap_ok(
        step.act == HVD_ROSTER_WAIT && step.again_ms > 1000,
        "when the last member with the state is gone, its success may still be reported");
    hvd_roster_done(&roster, 1100);
    tap_ok(act_of(&roster, 1100) == HVD_ROSTER_DISMISS,
           "a newcomer is dismissed if the last member had succeeded");
    hvd_roster_finish(&roster);
}

static void test_removed_slots(void)
{
    struct hvd_roster roster = at_work(3, 1, 3);
    struct hvd_roster_step step;

    hvd_roster_leave(&roster, 1);
    hvd_roster_next(&roster, 1000, &step);
    tap_ok(step.act == HVD_ROSTER_TELL && step.changes == HVD_ROSTER_REMOVED,
           "all are told that a member must leave");
    tap_ok(act_of(&roster, 1000) == HVD_ROSTER_WAIT, "members are told only once");
    ask(&roster, 0, 1, 1100);
    hvd_roster_next(&roster, 1100, &step);
    tap_ok(step.act == HVD_ROSTER_DISMISS && is_about(&step, "1 ") &&
               strstr(step.failure.error.text, "removed from elastic job") != NULL,
           "a member that must leave is dismissed when it joins");
    ask(&roster, 2, 2, 1200);
    tap_ok(act_of(&roster, 1200) == HVD_ROSTER_FORM && ranks_are(&roster, "0:0 1:- 2:1 "),
           "the others continue");
    hvd_roster_remove(&roster, 1, "n1", 1300);
    hvd_roster_stay(&roster, 1);
    come(&roster, 1, 2000);
    hvd_roster_next(&roster, 9000, &step);
    tap_ok(step.act == HVD_ROSTER_TELL && step.changes == HVD_ROSTER_ADDED,
           "a member that comes back joins like any other");
    hvd_roster_finish(&roster);

    roster = at_work(2, 1, 3);
    hvd_roster_leave(&roster, 1);
    hvd_roster_stay(&roster, 1);
    tap_ok(act_of(&roster, 1000) == HVD_ROSTER_WAIT, "a removal can be taken back");
    hvd_roster_finish(&roster);
}

int main(void)
{
    test_drops();
    test_success();
    test_removed_slots();
    test_beginning();
    test_resets();
    test_deaths();
    test_newcomers();
    test_spares();
    test_state();
    test_static_rank();
    test_limits();
    return tap_done();
}
