/* SPDX-License-Identifier: Apache-2.0 */
/* The difference between two clocks, measured by rounds over a simulated network. */
#include "collectives/trace/clock_offset.h"

#include <math.h>
#include <stdlib.h>

#include "tests/tap.h"

enum {
    SAMPLES = 200,
    ROUNDS = 32
};

static const int64_t us = 1000, second = 1000000000;

/* A world with two clocks: theirs = ours * speed + ahead. */
struct world {
    int64_t now_ns; /* our clock */
    int64_t ahead_ns;
    /* how much faster their clock runs than ours: 1e-6 is one part per million */
    double drift;
};

static int64_t theirs(const struct world *world)
{
    return world->now_ns + world->ahead_ns +
           (int64_t)(world->drift * (double)world->now_ns);
}

static void play(struct world *world, struct hvd_clock_offset *offset, int64_t there_ns,
                 int64_t back_ns)
{
    struct hvd_clock_round round = {.asked_ns = world->now_ns};

    world->now_ns += there_ns;
    round.received_ns = theirs(world);
    world->now_ns += 2 * us;
    round.answered_ns = theirs(world);
    world->now_ns += back_ns;
    round.returned_ns = world->now_ns;
    hvd_clock_offset_add(offset, &round);
}

static int64_t truth(const struct world *world)
{
    return theirs(world) - world->now_ns;
}

/* At least 10 us; every tenth message on average waits for a CPU. */
static int64_t delay(void)
{
    double unit = (double)rand() / RAND_MAX;
    int64_t ns = 10 * us + (int64_t)(15e3 * unit * unit * unit);

    return rand() % 10 == 0 ? ns + rand() % (10000 * (int)us) : ns;
}

static void same_ways_are_exact(void)
{
    struct world world = {.now_ns = 5 * second, .ahead_ns = -1234567890123};
    struct hvd_clock_offset offset = {0};

    tap_ok(!offset.is_known, "nothing is known at first");
    play(&world, &offset, 30 * us, 30 * us);
    tap_ok(offset.is_known && offset.offset_ns == world.ahead_ns &&
               offset.error_ns == 30 * us,
           "if both ways take equally long, the offset is exact");
    play(&world, &offset, 500 * us, 30 * us);
    tap_ok(offset.offset_ns == world.ahead_ns, "a slower round changes nothing");
    play(&world, &offset, 9 * us, 11 * us);
    tap_ok(llabs(offset.offset_ns - world.ahead_ns) == us && offset.error_ns == 10 * us,
           "a faster round is used; the error is half of the difference, and its limit "
           "half of the sum");
}

static void impossible_rounds_are_ignored(void)
{
    struct hvd_clock_offset offset = {0};
    struct hvd_clock_round backwards = {100, 200, 150, 400};
    struct hvd_clock_round too_fast = {100, 1000, 2000, 200};

    hvd_clock_offset_add(&offset, &backwards);
    hvd_clock_offset_add(&offset, &too_fast);
    tap_ok(!offset.is_known, "rounds with impossible times are ignored");
}

static void bursts_are_close(void)
{
    int far = 0, wrong = 0;

    for (int i = 0; i < SAMPLES; i++) {
        struct world world = {.now_ns = rand(), .ahead_ns = (int64_t)rand() * rand()};
        struct hvd_clock_offset offset = {0};
        int64_t error;

        for (int round = 0; round < ROUNDS; round++) {
            play(&world, &offset, delay(), delay());
        }
        error = llabs(offset.offset_ns - truth(&world));
        far += error > 10 * us ? 1 : 0;
        wrong += error > hvd_clock_offset_error(&offset, world.now_ns) ? 1 : 0;
    }
    tap_ok(far == 0,
           "the best of %d rounds on a busy machine is within 10 us of the truth",
           ROUNDS);
    tap_ok(wrong == 0, "the truth is within the limit of the error");
}

/* An hour of bursts of 8 rounds every 2 s. */
static void drift_is_followed(double drift)
{
    struct world world = {.ahead_ns = 77 * second, .drift = drift};
    struct hvd_clock_offset offset = {0};
    int64_t worst = 0;

    for (int i = 0; i < 1800; i++) {
        for (int round = 0; round < 8; round++) {
            play(&world, &offset, delay(), delay());
        }
        world.now_ns += 2 * second;
        if (llabs(offset.offset_ns - truth(&world)) > worst) {
            worst = llabs(offset.offset_ns - truth(&world));
        }
    }
    tap_ok(worst < 50 * us,
           "after an hour with clocks that differ by %g parts per million: %g us off",
           drift * 1e6, (double)worst / 1e3);
}

int main(void)
{
    srand(tap_seed(20260803));
    same_ways_are_exact();
    impossible_rounds_are_ignored();
    bursts_are_close();
    drift_is_followed(0);
    drift_is_followed(1e-6);
    drift_is_followed(-10e-6);
    return tap_done();
}
