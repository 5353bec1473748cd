/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks for tests of hvd-info --job and --pid. With an argument, they are jobs of two
 * ranks, the first of which is the argument. Without one, after five allreduces and two
 * steps, rank 1 is busy with other things, rank 2 stops itself, and all others wait for
 * them. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/collectives/calls.h"

static int run_pairs(const char *first)
{
    const int ranks[] = {atoi(first), atoi(first) + 1};
    struct hvd_error err;

    if (hvd_init_ranks(ranks, 2, &err) == 0) {
        pause();
    }
    fprintf(stderr, "live_ranks: %s\n", err.text);
    return 1;
}

int main(int argc, char **argv)
{
    int rank;

    if (argc > 1) {
        return run_pairs(argv[1]);
    }
    rank = call_init();
    for (int i = 0; i < 5; i++) {
        call_sums_ones("warm-up");
    }
    hvd_count_step();
    hvd_count_step();
    if (rank == 1) {
        pause();
    }
    if (rank == 2) {
        raise(SIGSTOP);
    }
    call_sums_ones("gradient");
    fputs("live_ranks: all have come\n", stderr);
    return 1;
}
