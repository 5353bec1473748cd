/* SPDX-License-Identifier: Apache-2.0 */
/* A job in which one rank, the victim, dies: victim RANK [sleep]. The other ranks print
 * the errors that they get. With "sleep" the victim prints a line and stays alive, for
 * tests that take its node away.
 *
 *   pending N: STATUS SECONDS TEXT   the call that was in flight when the rank died
 *   next N: STATUS TEXT              the call after it
 *
 * SECONDS is the time since the victim was last known to live, the end of an allreduce.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/collectives/survivor.h"

static int allreduce(const char *name, double *value, struct hvd_error *err)
{
    struct hvd_tensor tensor = {.name = name,
                                .input = value,
                                .output = value,
                                .dtype = HVD_FLOAT64,
                                .device = HVD_DEVICE_CPU};
    struct hvd_request *request = NULL;
    int status = hvd_allreduce_start(&tensor, 1, HVD_SUM, 1, 1, 0, &request, err);

    return survivor_wait(status, request, err);
}

int main(int argc, char **argv)
{
    int victim = argc > 1 ? atoi(argv[1]) : 0;
    struct hvd_error err = {0};
    double value = 1, start;
    int rank, status;

    rank = survivor_init();
    status = allreduce("life", &value, &err);
    start = survivor_now();
    if (rank == victim && argc > 2) {
        printf("sleeps\n");
        fflush(stdout);
        pause();
    } else if (rank == victim) {
        kill(getpid(), SIGKILL);
    }
    /* The victim may die so early that the first call already fails. */
    if (status == 0) {
        status = allreduce("pending", &value, &err);
    }
    survivor_pending(start, status, &err);
    status = allreduce("next", &value, &err);
    return survivor_next(status, &err);
}
