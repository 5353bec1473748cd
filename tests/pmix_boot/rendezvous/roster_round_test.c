/* SPDX-License-Identifier: Apache-2.0 */
/* Who meets whom, and what ranks are told that wait for others in vain. */
#include "pmix_boot/rendezvous/roster_round.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/tap.h"

enum {
    TIMEOUT_MS = 60000,
    ID = 100 /* the connection of rank 0 */
};

static struct hvd_meetings meetings;
static struct hvd_meeting_step step;
static struct hvd_meeting_failure failure;

static int hand_in(uint32_t number, int rank, int count, int64_t now_ms)
{
    const struct hvd_meeting_offer offer = {.number = number,
                                            .rank = rank,
                                            .index = rank,
                                            .count = count,
                                            .timeout_ms = TIMEOUT_MS};

    return hvd_meetings_offer(&meetings, ID + rank, &offer, now_ms, &failure);
}

/* As the rank at index of ranks[count]. */
static int hand_in_list(const int32_t *ranks, int index, int count, int64_t now_ms)
{
    const struct hvd_meeting_offer offer = {.list = 7,
                                            .number = 1,
                                            .rank = ranks[index],
                                            .index = index,
                                            .count = count,
                                            .ranks = ranks,
                                            .timeout_ms = TIMEOUT_MS};

    return hvd_meetings_offer(&meetings, ID + ranks[index], &offer, now_ms, &failure);
}

static enum hvd_meeting_act act(int64_t now_ms)
{
    hvd_meetings_next(&meetings, now_ms, &step);
    return step.act;
}

/* The step is for these connections, by rank. */
static bool is_for(int count, const int *ranks)
{
    bool is_same = step.count == count;

    for (int i = 0; i < count && is_same; i++) {
        is_same = step.ids[i] == ID + ranks[i];
    }
    return is_same;
}

static bool says(const struct hvd_meeting_failure *said, int status, const char *text)
{
    const bool is_said =
        said->error.status == status && strstr(said->error.text, text) != NULL;

    if (!is_said) {
        tap_note("status %d: %s", said->error.status, said->error.text);
    }
    return is_said;
}

static void begin(void)
{
    hvd_meetings_finish(&meetings);
}

static void test_all_meet(void)
{
    begin();
    tap_ok(act(0) == HVD_MEETING_WAIT && step.again_ms == -1, "nobody waits at first");
    hand_in(1, 2, 3, 10);
    hand_in(1, 0, 3, 20);
    tap_ok(act(20) == HVD_MEETING_WAIT && step.again_ms == 10 + TIMEOUT_MS,
           "two of three wait as long as the first wants to");
    hand_in(1, 1, 3, 30);
    tap_ok(act(30) == HVD_MEETING_COMPLETE && is_for(3, (int[]){0, 1, 2}),
           "with the third they are complete, in the order of their ranks");
    tap_ok(act(30) == HVD_MEETING_WAIT && meetings.count == 0, "and nothing is left");
    hand_in(1, 0, 2, 40);
    hand_in(2, 1, 2, 40);
    tap_ok(act(40) == HVD_MEETING_WAIT, "another number is another meeting");
    hand_in(2, 0, 2, 50);
    tap_ok(act(50) == HVD_MEETING_COMPLETE && is_for(2, (int[]){0, 1}),
           "which is complete by itself");
}

static void test_lists(void)
{
    static const int32_t ordered[] = {1, 3};
    static const int32_t turned[] = {3, 1};

    begin();
    hand_in_list(ordered, 0, 2, 0);
    hand_in_list(turned, 0, 2, 0);
    tap_ok(act(0) == HVD_MEETING_WAIT, "lists of the same hash that differ do not meet");
    hand_in_list(turned, 1, 2, 0);
    tap_ok(act(0) == HVD_MEETING_COMPLETE && is_for(2, (int[]){3, 1}),
           "ranks of one list meet in its order");
    tap_ok(act(TIMEOUT_MS) == HVD_MEETING_FAIL && is_for(1, (int[]){1}) &&
               says(&step.failure, HVD_ERR_TIMEOUT,
                    "1 of 2 ranks did not start within 60 s: rank 3; they have ended, "
                    "hang, or never called init with the same list of ranks"),
           "a rank of the other list is told whom it misses");
}

static void test_time(void)
{
    begin();
    hand_in(1, 1, 9, 0);
    hand_in(1, 4, 9, 5);
    tap_ok(act(TIMEOUT_MS - 1) == HVD_MEETING_WAIT, "before the time limit they wait");
    tap_ok(act(TIMEOUT_MS) == HVD_MEETING_FAIL && is_for(2, (int[]){1, 4}) &&
               says(&step.failure, HVD_ERR_TIMEOUT,
                    "7 of 9 ranks did not start within 60 s: ranks 0, 2-3, 5-8;") &&
               step.failure.culprit == -1,
           "then both hear which ranks are missing");
    tap_ok(act(TIMEOUT_MS) == HVD_MEETING_WAIT, "once");
    tap_ok(hand_in(1, 3, 9, TIMEOUT_MS + 1) == HVD_ERR_TIMEOUT &&
               says(&failure, HVD_ERR_TIMEOUT, "rank 3 has started when the others had"),
           "a rank that comes later hears that they have given up");
    tap_ok(hand_in(1, 3, 9, TIMEOUT_MS + 2) == 0, "when it comes again it begins anew");
    tap_ok(act(TIMEOUT_MS + 2) == HVD_MEETING_WAIT, "and waits");
}

static void test_many_missing(void)
{
    begin();
    for (int rank = 0; rank < 40; rank += 2) {
        hand_in(1, rank, 41, 0);
    }
    tap_ok(act(TIMEOUT_MS) == HVD_MEETING_FAIL &&
               says(&step.failure, HVD_ERR_TIMEOUT,
                    "21 of 41 ranks did not start within 60 s: ranks 1, 3, 5, 7, 9, 11 "
                    "and 15 more;"),
           "of many missing ranks six are named");
}

static void test_death(void)
{
    begin();
    hand_in(1, 0, 4, 0);
    hand_in(1, 3, 4, 0);
    hvd_meetings_leave(&meetings, ID + 3, "n2");
    tap_ok(act(0) == HVD_MEETING_FAIL && is_for(1, (int[]){0}) &&
               says(&step.failure, HVD_ERR_PEER,
                    "rank 3 on n2 has ended, or lost its network, before all 4 ranks") &&
               step.failure.culprit == 3,
           "a rank that ends while it waits is named to the others");
    tap_ok(hand_in(1, 1, 4, 1) == HVD_ERR_PEER && hand_in(1, 2, 4, 1) == HVD_ERR_PEER &&
               says(&failure, HVD_ERR_PEER, "rank 3 on n2") && failure.culprit == 3,
           "to those that come later, too");
    tap_ok(act(1) == HVD_MEETING_WAIT && meetings.count == 0, "then nothing is left");
    hand_in(1, 0, 2, 2);
    hvd_meetings_leave(&meetings, ID, "n1");
    tap_ok(act(2) == HVD_MEETING_WAIT, "one that has waited alone is told to nobody");
    hand_in(1, 0, 2, 3);
    hand_in(1, 1, 2, 3);
    tap_ok(act(3) == HVD_MEETING_COMPLETE, "a new process in its place meets the other");
    hvd_meetings_leave(&meetings, ID + 1, "n1");
    tap_ok(act(3) == HVD_MEETING_WAIT, "one that has its answer may go");
}

static void test_end(void)
{
    begin();
    hand_in(1, 0, 3, 0);
    hvd_meetings_end(&meetings, 2, W_EXITCODE(7, 0));
    tap_ok(act(0) == HVD_MEETING_FAIL && is_for(1, (int[]){0}) &&
               says(&step.failure, HVD_ERR_PEER,
                    "rank 2 exited with status 7 and did not call init:") &&
               step.failure.culprit == 2,
           "the launcher's word that a rank has ended is told to those that wait for it");
    tap_ok(hand_in(1, 1, 3, 0) == HVD_ERR_PEER, "and to the last one");
    hvd_meetings_end(&meetings, 4, SIGKILL);
    hand_in(4, 3, 5, 0);
    tap_ok(act(0) == HVD_MEETING_FAIL &&
               says(&step.failure, HVD_ERR_PEER, "rank 2 exited with status 7"),
           "of several the first is named");
    hand_in(3, 0, 2, 0);
    hvd_meetings_end(&meetings, 1, SIGKILL);
    tap_ok(act(0) == HVD_MEETING_FAIL &&
               says(&step.failure, HVD_ERR_PEER,
                    "rank 1 was killed by signal 9 (Killed) and did not call init:"),
           "how it ended is told, too");
    hand_in(2, 0, 2, 0);
    hand_in(2, 1, 2, 0);
    tap_ok(act(0) == HVD_MEETING_COMPLETE, "others meet without it");
    hvd_meetings_end(&meetings, -1, 0);
    hvd_meetings_end(&meetings, HVD_MEETING_MOST_RANKS, 0);
    tap_ok(act(0) == HVD_MEETING_WAIT, "a rank that cannot be changes nothing");
}

static void test_nonsense(void)
{
    static const int32_t list[] = {1, 3};
    struct hvd_meeting_offer offer = {.rank = 2, .index = 0, .count = 2, .ranks = list};

    begin();
    tap_ok(hvd_meetings_offer(&meetings, ID, &offer, 0, &failure) == HVD_ERR_ARG,
           "a rank that is not where the list says is refused");
    tap_ok(hand_in(1, 2, 2, 0) == HVD_ERR_ARG && hand_in(1, -1, 2, 0) == HVD_ERR_ARG &&
               hand_in(1, 0, 0, 0) == HVD_ERR_ARG &&
               hand_in(1, 0, HVD_MEETING_MOST_RANKS + 1, 0) == HVD_ERR_ARG,
           "so is one outside its job, and a job that cannot be");
    hand_in(1, 0, 3, 0);
    tap_ok(hand_in(1, 0, 3, 0) == HVD_ERR_STATE &&
               says(&failure, HVD_ERR_STATE, "two processes with rank 0"),
           "a second process of the same rank is refused");
    tap_ok(
        hand_in(1, 1, 2, 0) == HVD_ERR_MISMATCH &&
            says(&failure, HVD_ERR_MISMATCH, "rank 1 was told of 2 ranks, others of 3"),
        "so is one of another launch");
    hand_in(1, 1, 3, 0);
    hand_in(1, 2, 3, 0);
    tap_ok(act(0) == HVD_MEETING_COMPLETE, "the others do not notice");
    for (uint32_t number = 1; number < 1000; number++) {
        hand_in(number, 0, 2, 0);
        hvd_meetings_leave(&meetings, ID, "n1");
    }
    tap_ok(meetings.count <= 64, "ranks that come and go leave little behind");
}

int main(void)
{
    test_all_meet();
    test_lists();
    test_time();
    test_many_missing();
    test_death();
    test_end();
    test_nonsense();
    hvd_meetings_finish(&meetings);
    return tap_done();
}
