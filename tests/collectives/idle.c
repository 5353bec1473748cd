/* SPDX-License-Identifier: Apache-2.0 */
/* An initialised rank that does nothing for a while: prints the CPU time that this took. */
#include <stdio.h>
#include <stdlib.h>
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

int main(int argc, char **argv)
{
    unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 10;
    double before;

    call_init();
    if (!steps_play(200)) {
        return 1;
    }
    call_barrier();
    before = cpu_seconds();
    sleep(seconds);
    printf("idle %d: %.4f s of CPU in %u s\n", hvd_rank(), cpu_seconds() - before,
           seconds);
    return hvd_shutdown();
}
