/* SPDX-License-Identifier: Apache-2.0 */
/* Static jobs: which ranks begin together, and the answer to ranks that wait for others
 * that never come. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "pmix_boot/rendezvous/roster.h"
#include "tests/tap.h"

enum {
    TIMEOUT_MS = 60000,
    ID = 100, /* the connection of rank 0 */
    OTHER = 50 /* added for another connection of the same rank */
};

static struct hvd_roster roster;
static struct hvd_roster_step step;
static struct hvd_roster_failure failure;

static int join(int id, const struct hvd_roster_join *as, int64_t now_ms)
{
    if (hvd_roster_find(&roster, id) == NULL) {
        hvd_roster_add(&roster, id);
    }
    return hvd_roster_join(&roster, id, as, now_ms, &failure);
}

static int hand_in(int rank, int count, int64_t now_ms)
{
    const struct hvd_roster_join as = {
        .slot = rank, .index = rank, .count = count, .timeout_ms = TIMEOUT_MS};

    return join(ID + rank, &as, now_ms);
}

/* Joins as the rank ranks[index], in a job of the ranks in ranks[count]. */
static int hand_in_list(const int32_t *ranks, int index, int count, int id,
                        int64_t now_ms)
{
    const struct hvd_roster_join as = {.slot = ranks[index],
                                       .index = index,
                                       .count = count,
                                       .ranks = ranks,
                                       .timeout_ms = TIMEOUT_MS};

    return join(id, &as, now_ms);
}

static void leave(int rank, const char *host, int64_t now_ms)
{
    hvd_roster_remove(&roster, ID + rank, host, now_ms);
}

static enum hvd_roster_act act(int64_t now_ms)
{
    hvd_roster_next(&roster, now_ms, &step);
    return step.act;
}

/* Returns whether the step names exactly these connections; ids[] counts from that of
 * rank 0. */
static bool is_for(int count, const int *ids)
{
    bool is_same = step.count == count;

    for (int i = 0; i < count && is_same; i++) {
        is_same = step.ids[i] == ID + ids[i];
    }
    return is_same;
}

static bool says(const struct hvd_roster_failure *said, int status, const char *text)
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
    const struct hvd_roster_rules rules = {.np = 4};

    hvd_roster_finish(&roster);
    hvd_roster_init(&roster, &rules);
}

static void test_all_join(void)
{
    begin();
    tap_ok(act(0) == HVD_ROSTER_WAIT && step.again_ms == -1, "no rank waits at first");
    hand_in(2, 3, 10);
    hand_in(0, 3, 20);
    tap_ok(act(20) == HVD_ROSTER_WAIT && step.again_ms == 10 + TIMEOUT_MS,
           "two of three ranks wait until the first one's time limit");
    hand_in(1, 3, 30);
    tap_ok(act(30) == HVD_ROSTER_FORM && is_for(3, (int[]){0, 1, 2}),
           "three ranks begin with the third join, in the order of their ranks");
    tap_ok(act(30) == HVD_ROSTER_WAIT && roster.round_count == 0,
           "a round that has begun is removed");
    leave(0, "n1", 35);
    hand_in(0, 3, 40);
    hand_in(2, 3, 40);
    tap_ok(act(40) == HVD_ROSTER_WAIT,
           "ranks may join again, from the same or new processes");
    hand_in(1, 3, 50);
    tap_ok(act(50) == HVD_ROSTER_FORM && is_for(3, (int[]){0, 1, 2}),
           "ranks that joined again begin once all have");
}

static void test_lists(void)
{
    static const int32_t ordered[] = {1, 3};
    static const int32_t turned[] = {3, 1};

    begin();
    hand_in_list(ordered, 0, 2, ID + 1, 0);
    hand_in_list(turned, 0, 2, ID + 3, 0);
    tap_ok(act(0) == HVD_ROSTER_WAIT, "ranks of different lists do not begin together");
    hand_in_list(turned, 1, 2, ID + OTHER, 0);
    tap_ok(act(0) == HVD_ROSTER_FORM && is_for(2, (int[]){3, OTHER}),
           "ranks of one list do, in the order of the list");
    tap_ok(act(TIMEOUT_MS) == HVD_ROSTER_REFUSE && is_for(1, (int[]){1}) &&
               says(&step.failure, HVD_ERR_TIMEOUT,
                    "1 of 2 ranks did not start within 60 s: rank 3; they have ended, "
                    "hang, or never called init with the same list of ranks"),
           "a rank of the other list is told which rank is missing");
}

static void test_time(void)
{
    begin();
    hand_in(1, 9, 0);
    hand_in(4, 9, 5);
    tap_ok(act(TIMEOUT_MS - 1) == HVD_ROSTER_WAIT,
           "two of nine ranks wait until the time limit");
    tap_ok(act(TIMEOUT_MS) == HVD_ROSTER_REFUSE && is_for(2, (int[]){1, 4}) &&
               says(&step.failure, HVD_ERR_TIMEOUT,
                    "7 of 9 ranks did not start within 60 s: ranks 0, 2-3, 5-8;") &&
               step.failure.culprit == -1,
           "at the time limit both ranks are told which ranks are missing");
    tap_ok(act(TIMEOUT_MS) == HVD_ROSTER_WAIT,
           "ranks are told of missing ranks only once");
    tap_ok(hand_in(3, 9, TIMEOUT_MS + 1) == HVD_ERR_TIMEOUT &&
               says(&failure, HVD_ERR_TIMEOUT, "rank 3 started too late: the others") &&
               says(&failure, HVD_ERR_TIMEOUT, "for 60 s") &&
               says(&failure, HVD_ERR_TIMEOUT, "HVD_START_TIMEOUT"),
           "a rank that joins later is told that the others gave up, and the remedy");
    tap_ok(hand_in(3, 9, TIMEOUT_MS + 2) == 0, "when it joins again, a new round begins");
    tap_ok(act(TIMEOUT_MS + 2) == HVD_ROSTER_WAIT, "a rank waits in its new round");
}

static void test_many_missing(void)
{
    begin();
    for (int rank = 0; rank < 40; rank += 2) {
        hand_in(rank, 41, 0);
    }
    tap_ok(act(TIMEOUT_MS) == HVD_ROSTER_REFUSE &&
               says(&step.failure, HVD_ERR_TIMEOUT,
                    "21 of 41 ranks did not start within 60 s: ranks 1, 3, 5, 7, 9, 11 "
                    "and 15 more;"),
           "at most six ranges of missing ranks are named");
}

static void test_death(void)
{
    begin();
    hand_in(0, 4, 0);
    hand_in(3, 4, 0);
    leave(3, "n2", 0);
    tap_ok(act(0) == HVD_ROSTER_REFUSE && is_for(1, (int[]){0}) &&
               says(&step.failure, HVD_ERR_PEER,
                    "rank 3 on n2 has ended, or lost its network, before all 4 ranks") &&
               step.failure.culprit == 3,
           "a rank that ends while it waits is named in the error of the others");
    tap_ok(hand_in(1, 4, 1) == HVD_ERR_PEER && hand_in(2, 4, 1) == HVD_ERR_PEER &&
               says(&failure, HVD_ERR_PEER, "rank 3 on n2") && failure.culprit == 3,
           "it is named also to ranks that join later");
    tap_ok(act(1) == HVD_ROSTER_WAIT && roster.round_count == 0,
           "a round without waiting ranks is removed");
    begin();
    hand_in(0, 2, 2);
    leave(0, "n1", 2);
    tap_ok(act(2) == HVD_ROSTER_WAIT,
           "the end of a rank that waited alone is not reported");
    hand_in(0, 2, 3);
    hand_in(1, 2, 3);
    tap_ok(act(3) == HVD_ROSTER_FORM,
           "a new process of the rank begins with the other rank");
    leave(1, "n1", 3);
    tap_ok(act(3) == HVD_ROSTER_WAIT, "a rank that has its answer may leave");
}

static void end_rank(int rank, int wait_status, const char *host)
{
    struct hvd_missing_end end = {.rank = rank, .wait_status = wait_status};

    snprintf(end.host, sizeof(end.host), "%s", host);
    hvd_roster_end(&roster, &end);
}

static void test_hosts(void)
{
    begin();
    hand_in(0, 5, 0);
    tap_ok(
        hvd_roster_locate(&roster, 4, "n3") == 0 &&
            hvd_roster_locate(&roster, 1, "n1") == 0 &&
            hvd_roster_locate(&roster, 2, "n1") == 0 &&
            act(TIMEOUT_MS) == HVD_ROSTER_REFUSE &&
            says(&step.failure, HVD_ERR_TIMEOUT, "ranks 1-2 (on n1), 3, 4 (on n3); they"),
        "the error names the hosts that the launcher has told");
    begin();
    hand_in(0, 3, 0);
    hvd_roster_locate(&roster, 2, "n2");
    end_rank(2, W_EXITCODE(7, 0), "");
    tap_ok(act(0) == HVD_ROSTER_REFUSE &&
               says(&step.failure, HVD_ERR_PEER, "rank 2 on n2 exited with status 7"),
           "and so does the error on a rank that has ended");
    tap_ok(hvd_roster_locate(&roster, -1, "n2") == HVD_ERR_ARG &&
               hvd_roster_locate(&roster, HVD_ROSTER_MOST_RANKS, "n2") == HVD_ERR_ARG,
           "a rank that no launch has gets no host");
}

static void test_end(void)
{
    begin();
    hand_in(0, 3, 0);
    end_rank(2, 0, "n2");
    tap_ok(act(0) == HVD_ROSTER_REFUSE &&
               says(&step.failure, HVD_ERR_PEER,
                    "rank 2 on n2 exited with status 0 and did not call init:"),
           "the error names the host of a rank that has told its end itself");
    begin();
    hand_in(0, 3, 0);
    end_rank(2, W_EXITCODE(7, 0), "");
    tap_ok(
        act(0) == HVD_ROSTER_REFUSE && is_for(1, (int[]){0}) &&
            says(&step.failure, HVD_ERR_PEER,
                 "rank 2 exited with status 7 and did not call init:") &&
            step.failure.culprit == 2,
        "ranks are told when the launcher reports that a rank they wait for has ended");
    tap_ok(hand_in(1, 3, 0) == HVD_ERR_PEER, "the last rank to join is told, too");
    begin();
    end_rank(4, W_EXITCODE(7, 0), "");
    end_rank(1, SIGKILL, "");
    hand_in(3, 5, 0);
    tap_ok(act(0) == HVD_ROSTER_REFUSE &&
               says(&step.failure, HVD_ERR_PEER, "rank 4 exited with status 7"),
           "of several ended ranks, the first is named");
    begin();
    hand_in(0, 2, 0);
    end_rank(1, SIGKILL, "");
    tap_ok(act(0) == HVD_ROSTER_REFUSE &&
               says(&step.failure, HVD_ERR_PEER,
                    "rank 1 was killed by signal 9 (Killed) and did not call init:"),
           "the error tells how the rank ended");
    begin();
    end_rank(2, 0, "");
    end_rank(-1, 0, "");
    end_rank(HVD_ROSTER_MOST_RANKS, 0, "");
    hand_in(0, 2, 0);
    hand_in(1, 2, 0);
    tap_ok(act(0) == HVD_ROSTER_FORM,
           "a rank that is not in the list does not hold up the others");
    begin();
    hand_in(1, 2, 0);
    end_rank(1, 0, "");
    tap_ok(act(0) == HVD_ROSTER_WAIT,
           "a rank that waits counts as alive, whatever the launcher reported");
}

static void lose(int rank, int64_t now_ms)
{
    hvd_roster_lose(&roster, ID + rank, "n1", now_ms);
}

static void test_reset(void)
{
    begin();
    hand_in(0, 3, 0);
    hand_in(1, 3, 0);
    lose(1, 100);
    tap_ok(act(100) == HVD_ROSTER_WAIT && step.again_ms == 100 + HVD_ROSTER_RETURN_MS,
           "a rank whose connection was reset has a while to join again");
    hand_in(1, 3, 99 + HVD_ROSTER_RETURN_MS);
    hand_in(2, 3, 50000);
    tap_ok(act(50000) == HVD_ROSTER_FORM && is_for(3, (int[]){0, 1, 2}),
           "all begin if it does");
    begin();
    hand_in(0, 3, 0);
    hand_in(1, 3, 0);
    lose(1, 100);
    tap_ok(act(100 + HVD_ROSTER_RETURN_MS) == HVD_ROSTER_REFUSE &&
               is_for(1, (int[]){0}) &&
               says(&step.failure, HVD_ERR_PEER,
                    "rank 1 on n1 has ended, or lost its network, before all 3 ranks") &&
               step.failure.culprit == 1,
           "if it does not, the others are told which rank it is");
    tap_ok(hand_in(1, 3, 50000) == HVD_ERR_PEER && hand_in(2, 3, 50000) == HVD_ERR_PEER,
           "ranks that join later get the same error");
    begin();
    hand_in(0, 3, 0);
    hand_in(1, 3, 0);
    lose(1, 100);
    end_rank(1, SIGKILL, "");
    tap_ok(act(100) == HVD_ROSTER_REFUSE &&
               says(&step.failure, HVD_ERR_PEER, "rank 1 on n1 has ended, or lost"),
           "if its process ends, they are told at once");
    begin();
    hand_in(0, 4, 0);
    hand_in(1, 4, 0);
    hand_in(2, 4, 0);
    lose(0, 100);
    lose(1, 200);
    tap_ok(act(200) == HVD_ROSTER_REFUSE && is_for(1, (int[]){2}) &&
               says(&step.failure, HVD_ERR_PEER, "rank 1 on n1 has ended, or lost"),
           "a second rank that is lost meanwhile ends the start");
}

static void test_nonsense(void)
{
    static const int32_t list[] = {1, 3};
    struct hvd_roster_join as = {.slot = 2, .index = 0, .count = 2, .ranks = list};

    begin();
    tap_ok(join(ID, &as, 0) == HVD_ERR_ARG &&
               says(&failure, HVD_ERR_ARG,
                    "rank 2 claims position 0 of 2, which is not valid"),
           "a rank that is not at its position in the list is rejected");
    tap_ok(hand_in(2, 2, 0) == HVD_ERR_ARG && hand_in(-1, 2, 0) == HVD_ERR_ARG &&
               hand_in(0, -1, 0) == HVD_ERR_ARG &&
               hand_in(0, HVD_ROSTER_MOST_RANKS + 1, 0) == HVD_ERR_ARG,
           "a rank outside its job and an impossible job are rejected");
    tap_ok(hand_in(0, 0, 0) == HVD_ERR_STATE &&
               says(&failure, HVD_ERR_STATE, "HOROVOD_ELASTIC"),
           "a rank that joins as in an elastic job is rejected");
    hand_in(0, 3, 0);
    as = (struct hvd_roster_join){.count = 3, .timeout_ms = TIMEOUT_MS};
    tap_ok(join(ID + OTHER, &as, 0) == HVD_ERR_STATE &&
               says(&failure, HVD_ERR_STATE, "two processes with rank 0"),
           "a second process of the same rank is rejected");
    tap_ok(hand_in(0, 3, 0) == HVD_ERR_ARG, "a rank that waits does not join again");
    tap_ok(
        hand_in(1, 2, 0) == HVD_ERR_MISMATCH &&
            says(&failure, HVD_ERR_MISMATCH, "rank 1 was told of 2 ranks, others of 3"),
        "a rank of another launch is rejected");
    hand_in(1, 3, 0);
    hand_in(2, 3, 0);
    tap_ok(act(0) == HVD_ROSTER_FORM, "the others are not affected");
    for (int32_t rank = 1; rank < 1000; rank++) {
        const int32_t pair[] = {0, rank};

        hand_in_list(pair, 0, 2, ID, 0);
        leave(0, "n1", 0);
    }
    tap_ok(roster.round_count <= 64, "failed rounds do not accumulate");
}

int main(void)
{
    test_all_join();
    test_lists();
    test_time();
    test_hosts();
    test_many_missing();
    test_death();
    test_end();
    test_reset();
    test_nonsense();
    hvd_roster_finish(&roster);
    return tap_done();
}
