/* SPDX-License-Identifier: Apache-2.0 */
/* The process has only one CPU, which the program itself needs. So the progress thread
 * leaves submissions to the program's next wait; it takes them itself only if no wait
 * comes for some time. With HOROVOD_CYCLE_TIME the thread takes them after one cycle.
 * Prints TAP. */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/collectives/calls.h"
#include "tests/tap.h"

enum {
    ROUNDS = 20, /* the rounds to play in which `counts` is true */
    TRIES = 400,
    DOZE_MS = 5, /* after a submission, the thread expects another one within this time */
    LEFT_MS = 50 /* far more than the thread needs if it polls in every cycle */
};

/* The outcome of two sums, one after the other. */
struct round {
    /* the second sum followed the first within DOZE_MS, so the thread was still in its
     * timed wait */
    bool counts;
    bool is_left; /* the second sum, for which no thread waits, took LEFT_MS or more */
};

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int start_sum(float *value, struct hvd_request **request)
{
    struct hvd_tensor tensor = call_tensor("sum", HVD_FLOAT32, NULL, 0, value, value);

    return hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, request, NULL);
}

/* Submits two sums, waits for the first, and polls until the second has ended. */
static struct round play_round(void)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    float first = 1, second = 2;
    struct hvd_request *request;
    struct hvd_error err = {0};
    int64_t began = now_ms(), submitted;
    struct round round;

    call_finish(start_sum(&first, &request), &request, &err);
    hvd_request_free(request);
    if (start_sum(&second, &request) != 0) {
        exit(1);
    }
    submitted = now_ms();
    while (hvd_wait_for(request, 0, NULL) == HVD_INPROGRESS) {
        nanosleep(&pause, NULL);
    }
    round = (struct round){.counts = submitted - began < DOZE_MS,
                           .is_left = now_ms() - submitted >= LEFT_MS};
    call_finish(0, &request, &err);
    hvd_request_free(request);
    return round;
}

static void need_one_cpu(void)
{
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    CPU_SET(sched_getcpu(), &cpus);
    if (sched_setaffinity(0, sizeof(cpus), &cpus) != 0) {
        perror("sched_setaffinity");
        exit(1);
    }
}

int main(void)
{
    const bool has_cycle = getenv("HOROVOD_CYCLE_TIME") != NULL;
    int left = 0, rounds = 0;

    need_one_cpu();
    call_init();
    for (int i = 0; i < TRIES && rounds < ROUNDS; i++) {
        struct round round = play_round();

        rounds += round.counts ? 1 : 0;
        left += round.counts && round.is_left ? 1 : 0;
    }
    hvd_shutdown();
    tap_note("%d sums without a waiting thread have ended", rounds);
    if (rounds < ROUNDS) {
        tap_skip("the thread leaves its only CPU to the program",
                 "no two calls came within 5 ms");
    } else if (has_cycle) {
        tap_ok(left < ROUNDS / 2,
               "with HOROVOD_CYCLE_TIME the thread polls in time (not in %d of %d)", left,
               ROUNDS);
    } else {
        tap_ok(left > ROUNDS / 2,
               "the thread leaves its only CPU to the program (%d of %d)", left, ROUNDS);
    }
    return tap_done();
}
