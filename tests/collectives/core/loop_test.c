/* SPDX-License-Identifier: Apache-2.0 */
/* The loop that drives a rank: which functions of its sources it calls, and in which
 * order. Prints TAP. */
#include "collectives/core/loop.h"

#include <string.h>

#include "gpu_binding/base/clock.h"
#include "tests/tap.h"

/* A source of the loop that records its letter at each call. */
struct part {
    char letter;
    unsigned result; /* returned by progress */
    bool is_unsettled;
    int64_t due_ns;
    bool has_drained;
    bool may_not_drain;
};

static struct hvd_loop loop;
static struct part a, b, c;
static char calls[64]; /* the letters of the calls since they were last checked */

static void note(const struct part *part)
{
    strncat(calls, &part->letter, 1);
}

static bool were(const char *expected)
{
    bool good = strcmp(calls, expected) == 0;

    if (!good) {
        tap_note("calls '%s' instead of '%s'", calls, expected);
    }
    calls[0] = '\0';
    return good;
}

static unsigned progress(void *self, int64_t now_ns)
{
    const struct part *part = self;

    (void)now_ns;
    note(part);
    return part->result;
}

static bool settle(void *self, const struct hvd_timed_wait *wait)
{
    const struct part *part = self;

    (void)wait;
    note(part);
    return !part->is_unsettled;
}

static int64_t deadline(const void *self, int64_t now_ns)
{
    (void)now_ns;
    return ((const struct part *)self)->due_ns;
}

static bool may_drain(void *self)
{
    const struct part *part = self;

    note(part);
    return !part->may_not_drain;
}

static bool has_drained(const void *self)
{
    return ((const struct part *)self)->has_drained;
}

static void end(void *self, int status, const char *text)
{
    (void)status;
    (void)text;
    note(self);
}

static void stop(void *self)
{
    note(self);
}

static const struct hvd_source talker = {.name = "talker",
                                         .talks = true,
                                         .progress = progress,
                                         .settle = settle,
                                         .deadline = deadline,
                                         .may_drain = may_drain,
                                         .drain = end,
                                         .has_drained = has_drained,
                                         .end = end,
                                         .fail = end,
                                         .stop = stop,
                                         .close = stop};
static const struct hvd_source mover = {.name = "mover",
                                        .progress = progress,
                                        .settle = settle,
                                        .deadline = deadline,
                                        .may_drain = may_drain,
                                        .drain = end,
                                        .has_drained = has_drained,
                                        .end = end,
                                        .fail = end,
                                        .stop = stop,
                                        .close = stop};
static const struct hvd_source silent = {.name = "silent"};

static void begin(void)
{
    loop = (struct hvd_loop){0};
    a = (struct part){.letter = 'a', .due_ns = -1, .has_drained = true};
    b = (struct part){.letter = 'b', .due_ns = -1, .has_drained = true};
    c = (struct part){.letter = 'c', .due_ns = -1, .has_drained = true};
    calls[0] = '\0';
    hvd_loop_add(&loop, &talker, &a, NULL);
    hvd_loop_add(&loop, &silent, NULL, NULL);
    hvd_loop_add(&loop, &mover, &b, NULL);
}

static unsigned add_another(void *self, int64_t now_ns)
{
    static const struct hvd_source once = {.name = "once", .progress = progress};

    (void)now_ns;
    note(self);
    hvd_loop_add(&loop, &once, &c, NULL);
    return 0;
}

static void test_poll(void)
{
    static const struct hvd_source adder = {.name = "adder", .progress = add_another};

    begin();
    tap_ok(!hvd_loop_poll(&loop) && were("ab"),
           "sources are polled in the order in which they were added");
    b.result = HVD_SOURCE_WORKS;
    tap_ok(!hvd_loop_poll(&loop) && loop.works,
           "a source may be working without having moved");
    a.result = HVD_SOURCE_MOVED;
    tap_ok(hvd_loop_poll(&loop) && loop.works && !loop.data_moves,
           "control messages do not count as moving data");
    begin();
    hvd_loop_add(&loop, &adder, &b, NULL);
    hvd_loop_poll(&loop);
    tap_ok(were("abbc"), "a source that another one adds is polled in the same round");
}

/* Whether some round leaves out a, the source of control messages. Not every round does:
 * after 20 us the source is polled again. */
static bool leaves_talk_out(void)
{
    const int64_t until_ns = hvd_clock_ns() + 10000000000;

    while (hvd_clock_ns() < until_ns) {
        calls[0] = '\0';
        hvd_loop_poll(&loop);
        if (strchr(calls, 'a') == NULL) {
            return true;
        }
    }
    return false;
}

static bool talks_again(void)
{
    calls[0] = '\0';
    while (strchr(calls, 'a') == NULL) {
        calls[0] = '\0';
        hvd_loop_poll(&loop);
    }
    return true;
}

static void test_talk(void)
{
    begin();
    b.result = HVD_SOURCE_MOVED | HVD_SOURCE_WORKS;
    tap_ok(leaves_talk_out() && talks_again(),
           "while data moves, control messages are polled less often");
    b.result = HVD_SOURCE_WORKS;
    hvd_loop_poll(&loop);
    calls[0] = '\0';
    hvd_loop_poll(&loop);
    tap_ok(were("ab"), "while no data moves, control messages are polled in each round");
}

static void test_gate(void)
{
    static _Atomic bool gate, other;

    begin();
    hvd_loop_add(&loop, &mover, &c, &gate);
    c.due_ns = 5;
    hvd_loop_poll(&loop);
    tap_ok(were("ab") && hvd_loop_deadline(&loop, -1, 0) == -1,
           "a source with a closed gate is not polled and has no deadline");
    atomic_store(&gate, true);
    hvd_loop_poll(&loop);
    tap_ok(were("abc") && hvd_loop_deadline(&loop, -1, 0) == 5,
           "a source with an open gate is polled and has a deadline");
    atomic_store(&gate, false);
    hvd_loop_open_gate(&loop, &other);
    hvd_loop_poll(&loop);
    tap_ok(were("ab"), "opening another gate changes nothing");
    hvd_loop_open_gate(&loop, &gate);
    hvd_loop_poll(&loop);
    tap_ok(were("abc"), "a gate can be opened for good");
}

static void test_settle(void)
{
    const struct hvd_timed_wait wait = {.end_ns = -1};

    begin();
    tap_ok(hvd_loop_settle(&loop, &wait) && were("ab"), "all sources settle");
    a.is_unsettled = true;
    tap_ok(!hvd_loop_settle(&loop, &wait) && were("a"),
           "no source settles after one that has something to do");
}

static void test_deadline(void)
{
    begin();
    tap_ok(hvd_loop_deadline(&loop, -1, 0) == -1, "without deadlines the loop has none");
    a.due_ns = 30;
    b.due_ns = 20;
    tap_ok(hvd_loop_deadline(&loop, -1, 0) == 20,
           "the earliest deadline of the sources counts");
    tap_ok(hvd_loop_deadline(&loop, 10, 0) == 10 && hvd_loop_deadline(&loop, 25, 0) == 20,
           "an earlier deadline of the caller counts");
}

static void test_end(void)
{
    begin();
    tap_ok(hvd_loop_may_drain(&loop) && were("ab"),
           "all sources are asked whether they may drain");
    a.may_not_drain = true;
    tap_ok(!hvd_loop_may_drain(&loop) && were("ab"),
           "all sources are asked, even after one that may not drain, which holds up the "
           "others");
    hvd_loop_drain(&loop, 0, "");
    tap_ok(were("ab") && hvd_loop_has_drained(&loop),
           "sources drain in the order in which they were added");
    b.has_drained = false;
    tap_ok(!hvd_loop_has_drained(&loop),
           "the loop has not drained before its last source has");
    hvd_loop_end(&loop, 0, "");
    tap_ok(were("ab"), "sources end in the order in which they were added");
    hvd_loop_fail(&loop, 0, "");
    tap_ok(were("ba"), "sources fail in reverse order");
    hvd_loop_close(&loop);
    tap_ok(were("baba") && loop.count == 0,
           "all sources stop before the first is closed, both in reverse order");
}

int main(void)
{
    test_poll();
    test_talk();
    test_gate();
    test_settle();
    test_deadline();
    test_end();
    return tap_done();
}
