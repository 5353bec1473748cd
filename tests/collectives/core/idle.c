/* SPDX-License-Identifier: Apache-2.0 */
/* An initialized rank that does nothing for some seconds prints how often it was woken,
 * and the CPU time that it used: idle SECONDS ROUNDS. Before that, it plays ROUNDS
 * rounds, and pauses for 10 ms after each. If it does not drain a late wake-up from its
 * descriptor, it is busy instead of asleep during such a pause. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tests/collectives/calls.h"
#include "tests/collectives/steps.h"

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Counts how often threads of this process have gone to sleep. */
static long count_sleeps(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
}

static bool is_busy_round(void)
{
    double before;

    steps_play(2);
    call_barrier();
    before = cpu_seconds();
    usleep(10000);
    return cpu_seconds() - before > 0.009;
}

int main(int argc, char **argv)
{
    unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 10;
    int rounds = argc > 2 ? atoi(argv[2]) : 0, busy = 0;
    double before;
    long sleeps;

    call_init();
    if (!steps_play(200)) {
        return 1;
    }
    for (int i = 0; i < rounds; i++) {
        busy += is_busy_round() ? 1 : 0;
    }
    printf("rounds %d: busy in %d of %d\n", hvd_rank(), busy, rounds);
    call_barrier();
    before = cpu_seconds();
    sleeps = count_sleeps();
    sleep(seconds);
    printf("idle %d: woken %ld times, %.4f s of CPU in %u s\n", hvd_rank(),
           count_sleeps() - sleeps, cpu_seconds() - before, seconds);
    return hvd_shutdown();
}
